"""Test cases of pipelines that pass and that fail, with their messages, on real Spark without a broker."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from sskafka.cli.commands import app
from sskafka.pipelines.files.cases import load_cases
from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.runner.case_run import differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """\
name: clicks
variables: {slow: 100}
sources:
  clicks:
    topic: clicks
    schema: user string not null, page string, ms int, at timestamp
    event_time: at
    watermark: 1 minute
    dedupe: [user, at]
    expectations: [{name: positive, check: ms >= 0, action: dlq}]
  users:
    topic: users
    format: avro
    schema: >
      {"type": "record", "name": "u", "fields": [
        {"name": "user", "type": "string"}, {"name": "country", "type": "string"}]}
steps:
  slow: {sql: "select user, page, ms, at from clicks where ms > ${slow}"}
transform:
  sql: |
    select country, count(*) as clicks, avg(ms) as ms, max(at) as last
    from slow join users on slow.user = users.user group by country
sinks: [{console: {}}]
profiles:
  patient: {variables: {slow: 1000}}
"""
CASES = """\
cases:
  - name: slow clicks are counted by country
    given:
      clicks:
        - {user: anna, page: /, ms: 200, at: 2026-01-01T00:00:00Z}
        - {user: anna, page: /, ms: 200, at: 2026-01-01T00:00:00Z}
        - {user: anna, page: /a, ms: 201, at: 2026-01-01T00:00:05Z}
        - {user: bert, page: /b, ms: 5, at: 2026-01-01T00:00:05Z}
      users:
        - {user: anna, country: NO}
        - {user: bert, country: SE}
    expect:
      slow: [{user: anna, ms: 200}, {user: anna, page: /a}]
      result: [{country: NO, clicks: 2, ms: 200.5, last: 2026-01-01T00:00:05Z}]
      dead_letters: []
  - name: what cannot be used is dead
    given:
      clicks: ["not json", {page: /}, {user: anna, ms: -1}, {_value: null, _key: k}, {_value: '{"user": "x"}', ms: 1}]
    expect:
      result: []
      dead_letters:
        - {error: the value is not JSON, value: not json}
        - {error: the field user is missing, source: clicks}
        - {error: "the expectation positive is not met: ms >= 0"}
        - {error: the record has no value, key: k}
        - {error: "the expectation positive is not met: ms >= 0", offset: 4}
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    (tmp_path / "clicks.yaml").write_text(PIPELINE)
    file = tmp_path / "clicks.test.yaml"
    file.write_text(CASES)
    return file


def test_cases_pass_when_every_table_is_as_expected(spark: "SparkSession", cases: Path) -> None:
    assert {case.name: differences(spark, case) for case in load_cases(cases)} == {
        "slow clicks are counted by country": [],
        "what cannot be used is dead": [],
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("clicks: 2, ms: 200.5", "clicks: 3, ms: 200.5", ["missing: ", "not expected: "]),
        ("[{user: anna, ms: 200}, {user: anna, page: /a}]", "[{user: anna, ms: 200}]", ["slow: not expected: .*/a"]),
        ("dead_letters: []", "dead_letters: [{key: x}]", ["dead_letters: missing: .*x"]),
        ("last: 2026-01-01T00:00:05Z", "lst: 1", ["there is no column lst; it has country, clicks, ms, last"]),
        (
            "    expect:\n      slow:",
            "    fails: nothing does\n    expect:\n      slow:",
            ["it does not fail with 'nothing does'"],
        ),
    ],
)
def test_what_differs_is_told_row_by_row(
    spark: "SparkSession", cases: Path, old: str, new: str, expected: list[str]
) -> None:
    assert old in CASES
    cases.write_text(CASES.replace(old, new, 1))
    found = differences(spark, load_cases(cases)[0])
    assert len(found) == len(expected), found
    assert all(re.search(pattern, line) for pattern, line in zip(expected, found, strict=True)), found


def test_a_pipeline_may_be_expected_to_fail(spark: "SparkSession", cases: Path) -> None:
    text = PIPELINE.replace("action: dlq", "action: fail")
    (cases.parent / "clicks.yaml").write_text(text)
    given = "given: {clicks: [{user: a, ms: -1}], users: [{user: a, country: b}]}"
    cases.write_text(f"cases: [{{name: fails, {given}, fails: the expectation positive is not met}}]")
    assert differences(spark, load_cases(cases)[0]) == []


def test_profile_and_variables_of_the_pipeline_can_be_chosen(spark: "SparkSession", cases: Path) -> None:
    cases.write_text(f"profile: patient\n{CASES}")
    assert differences(spark, load_cases(cases)[0])[0].startswith("slow: missing")
    cases.write_text(f"profile: patient\nset: {{slow: 100}}\n{CASES}")
    assert differences(spark, load_cases(cases)[0]) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cases: [{name: a, expect: {reslt: []}}]", "did you mean result?"),
        ("cases: [{name: a, given: {click: []}, expect: {result: []}}]", "did you mean clicks?"),
        ("cases: [{name: a, given: {clicks: {}}, expect: {result: []}}]", "must be a list"),
        ("cases: [{name: a}]", "expects nothing: give `expect` or `fails`"),
        ("cases: [{name: a, expect: {result: [7]}}]", "is not a mapping of columns to values"),
        ("case: []", "did you mean cases?"),
        ("pipeline: nowhere.yaml\ncases: []", "there is no file"),
    ],
)
def test_mistakes_in_a_file_of_cases_are_named_with_their_line(cases: Path, text: str, expected: str) -> None:
    cases.write_text(text)
    with pytest.raises(PipelineFileError, match=re.escape(expected)) as failure:
        load_cases(cases)
    assert f"{cases}:" in str(failure.value)


def test_the_command_prints_each_case_and_fails_with_the_first_difference(
    spark: "SparkSession", cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sskafka.pipelines.session.stop_session", lambda: None)  # the session is the other tests', too
    good = CliRunner().invoke(app, ["pipeline", "test", str(cases.parent / "clicks.yaml"), "--master", "local[2]"])
    assert good.exit_code == 0, good.output
    assert "passed  " in good.output
    cases.write_text(CASES.replace("clicks: 2", "clicks: 3"))
    bad = CliRunner().invoke(app, ["pipeline", "test", str(cases), "-k", "slow", "--master", "local[2]"])
    assert bad.exit_code == 1
    assert "FAILED  " in bad.output
    assert "missing: " in bad.output
