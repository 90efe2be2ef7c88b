from pathlib import Path

import pytest
from typer.testing import CliRunner

from sskafka.cli.commands import app
from sskafka.cli.pipeline import progress_line, run_state, status_rows
from sskafka.pipelines.runner.events import Event, EventType
from sskafka.pipelines.runner.progress import QueryProgress

NOBODY = "127.0.0.1:9"


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", *arguments])
    return result.exit_code, result.output


def test_a_mistake_in_a_file_is_told_with_its_line_before_anything_is_started(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: bad\nsources:\n  a: {topic: a, format: jsn}\nsinks: [{console: {}}]\n")
    code, said = invoke("run", str(file), "-b", NOBODY)
    assert code == 1
    assert f"{file}:3: sources.a.format: 'jsn' is not possible; did you mean json?" in said


def test_a_file_that_is_not_there() -> None:
    code, said = invoke("plan", "nowhere.yaml", "-b", NOBODY)
    assert code == 1
    assert "there is no file nowhere.yaml" in said


def test_brokers_that_are_down_are_told_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text("name: good\nsources:\n  a: {topic: a, format: text}\nsinks: [{console: {}}]\n")
    code, said = invoke("run", str(file), "-b", NOBODY)
    assert code == 1
    assert "cannot connect to 127.0.0.1:9" in said
    assert "Spark" not in said


def test_a_reset_is_a_dry_run_unless_told_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text("name: good\nsources:\n  a: {topic: a, format: text}\nsinks: [{console: {}}]\ncheckpoint: state\n")
    assert "no checkpoint" in invoke("reset", str(file))[1]
    (tmp_path / "state" / "console").mkdir(parents=True)
    assert "would delete" in invoke("reset", str(file))[1]
    assert (tmp_path / "state").exists()
    assert invoke("reset", str(file), "--execute")[0] == 0
    assert not (tmp_path / "state").exists()


def test_pipelines_are_listed_and_bad_files_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\nsources:\n  t: {pattern: t-.*, format: raw}\nsinks: [{console: {}}]\n")
    (tmp_path / "b.yaml").write_text("name: B\n")
    _, said = invoke("list", str(tmp_path))
    assert "t-.*" in said
    assert "b.yaml:1: name" in said


@pytest.mark.parametrize(
    ("kind", "age_ms", "state"),
    [
        (EventType.PROGRESS, 1_000, "running"),
        (EventType.PROGRESS, 60_000, "lost"),
        (EventType.STOP_REQUESTED, 1_000, "stopping"),
        (EventType.STOPPED, 60_000, "stopped"),
        (EventType.FAILED, 60_000, "failed"),
    ],
)
def test_the_state_of_a_run(kind: EventType, age_ms: int, state: str) -> None:
    assert run_state(Event("p", "r", kind, 100_000), 100_000 + age_ms) == state


def test_a_row_for_each_query_with_the_error_of_the_run() -> None:
    queries = [{"query": "parquet", "batch": 3, "in_per_s": 10.4, "out_per_s": 9.6, "lag": 7, "state_rows": 2}]
    events = [
        Event("p", "r", EventType.STARTED, 1),
        Event("p", "r", EventType.PROGRESS, 2, {"queries": queries}),
        Event("p", "r", EventType.FAILED, 3, {"error": "boom"}),
    ]
    assert status_rows(events, 4) == [("p", "failed", "r", "parquet", 3, 10, 10, 7, None, 2, "boom")]
    assert status_rows(events[:1], 4)[0][:3] == ("p", "running", "r")


def test_progress_in_a_line() -> None:
    progress = QueryProgress("topic", 4, 100, 90, 50.0, 45.0, 3, "2026", 7, 10, {"positive": 2, "other": 0})
    assert progress_line(progress) == (
        "topic: batch 4, 100 rows in (50/s), 90 out (45/s), lag 3, watermark 2026, 7 rows of state, 2 unmet positive"
    )
