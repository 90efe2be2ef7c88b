"""Files that cannot be used as a whole, and values of the wrong shape: one sentence each, in our own words."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from sskafka.pipelines.files.cases import load_cases
from sskafka.pipelines.files.document import NESTING_MAX, VALUES_MAX, PipelineFileError
from sskafka.pipelines.files.pipeline import load_pipeline

FULL = """\
name: everything
sources:
  orders:
    topics: [orders]
    format: json
    schema: {id: long not null, at: timestamp}
    framing: none
    tombstones: drop
    starting: latest
    event_time: at
    watermark: 10 minutes
    dedupe: [id]
    max_offsets_per_trigger: 5
    expectations: [{name: a, check: id > 0, action: dlq}]
    options: {minPartitions: 4}
  users: {pattern: users-.*, format: raw}
steps:
  large: {sql: select * from orders, expectations: [{name: b, check: id > 0, action: drop}]}
transform: {sql: select * from large}
sinks:
  - parquet: {name: p, path: out, partition_by: [id], from: large}
  - delta: {path: d, partition_by: [id], merge_keys: [id], delete_column: id, evolve: true}
  - iceberg: {table: a.b, catalog: {name: c, uri: u}, partition_by: [id], evolve: true}
  - jdbc:
      url: jdbc:derby:d
      table: t
      user: u
      password: word
      driver: d
      merge_keys: [id]
      column_types: {id: int}
      options: {batchsize: 5}
  - topic: {topic: out, key: id, value: id, guarantee: exactly-once, partitions: 3}
  - console: {rows: 5}
expectations: [{name: c, check: id > 0, action: warn}]
trigger: 1 minute
output_mode: append
strict: true
after: os.path:join
checkpoint: state
dead_letters: dead
connector: auto
lineage: file:events
spark: {spark.x: 1}
"""


def problem_of(tmp_path: Path, content: str | bytes) -> str:
    """Return the only problem of a file, without its path."""
    path = tmp_path / "broken.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PipelineFileError) as failure:
        load_pipeline(path)
    (line,) = str(failure.value).splitlines()
    return line.removeprefix(f"{path}:")


LAUGHS = "a0: &a0 [lol, lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "1:1: the file is empty; a pipeline is a mapping that begins with `name: ...`"),
        ("# nothing\n", "1:1: the file is empty; a pipeline is a mapping that begins with `name: ...`"),
        ("- a", "1:1: a pipeline is a mapping that begins with `name: ...`"),
        (b"name: a\nsources: \xff\n", "2:10: the file is not UTF-8 text: the byte 0xff is not allowed here"),
        ("name: a\nspark: \x00", "2:8: this is not YAML: the character U+0000 is not allowed"),
        (
            "name: a\n\tspark: {}",
            "2:1: this is not YAML: found character '\\t' that cannot start any token; indent with",
        ),
        ("name: a: b", "1:8: this is not YAML: mapping values are not allowed here; put quotes around a value that"),
        ("name: [a", "1:9: this is not YAML: expected ',' or ']', but got '<stream end>'"),
        ("name: *b", "1:7: this is not YAML: found undefined alias 'b'"),
        ("name: a\n---\nname: b", "2:1: this is not YAML: but found another document; a file contains one document"),
        ("name: a\nname: b", "2:1: name: is given twice"),
        ("sources:\n  a: {topic: a, topic: b}", "2:17: sources.a.topic: is given twice"),
        ("profiles: {x: {name: a, name: b}}", "1:25: profiles.x.name: is given twice"),
        ("spark: {[a]: b}", "1:9: spark: a key must be text"),
        ("spark: &a {b: *a}", "1:15: the alias *a contains itself"),
        ("spark: " + "[" * 9999, f"1:{NESTING_MAX + 7}: values are nested more than {NESTING_MAX} levels deep"),
        (LAUGHS, f"6:5: the file has more than {VALUES_MAX:,} values, counting those that aliases repeat"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_sentence(tmp_path: Path, content: str | bytes, told: str) -> None:
    started = time.monotonic()
    assert problem_of(tmp_path, content).startswith(told)
    assert time.monotonic() - started < 20, "aliases are counted, not expanded"


def test_a_directory_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match=r":1:1: the file cannot be read: Is a directory"):
        load_pipeline(tmp_path)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in items for found in paths_of(inner, (*path, key)))]


def with_value(path: tuple[Any, ...], value: Any) -> str:
    document = inner = yaml.safe_load(FULL)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return yaml.safe_dump(document, sort_keys=False)


PATHS = [path for path in paths_of(yaml.safe_load(FULL)) if path]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
@pytest.mark.parametrize("wrong", [None, "~wrong~", [["wrong"]], {"wrong": {"very": "wrong"}}], ids=repr)
def test_a_value_of_the_wrong_shape_is_told_in_our_words(tmp_path: Path, path: tuple[Any, ...], wrong: Any) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(with_value(path, wrong))
    try:
        load_pipeline(file)
    except PipelineFileError as error:
        for line in str(error).splitlines():
            assert re.match(rf"{re.escape(str(file))}:\d+:\d+: [\w.\[\]~-]+: .", line), line
            assert not re.search(r"(?i)\binput should|valid (string|dict|tuple|list)|pydantic|Scalar|Fields\(", line)
    else:
        assert wrong in {None, "~wrong~"}, "a list of lists and a mapping of mappings are nowhere allowed"


def test_the_full_file_is_right(tmp_path: Path) -> None:
    """Otherwise the test above would test nothing."""
    file = tmp_path / "full.yaml"
    file.write_text(FULL)
    assert len(load_pipeline(file).sinks) == 6


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cases: {}", "1:8: cases: must be a list"),
        ("cases: [7]", "1:9: cases[0]: must be a mapping"),
        ("cases: [{name: a, given: [], fails: x}]", "1:26: cases[0].given: must be a mapping"),
        ("cases: [{name: a, expect: {result: [{a: 1}, 7]}}]", "1:45: cases[0].expect.result[1]: the row is not a map"),
        ("cases: [{expect: {result: []}}]", "1:9: cases[0].name: is missing"),
        ("profile: x", "1:1: cases: is missing"),
    ],
)
def test_files_of_cases_are_checked_in_the_same_way(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "a.test.yaml"
    file.write_text(text)
    with pytest.raises(PipelineFileError) as failure:
        load_cases(file)
    assert str(failure.value).startswith(f"{file}:{told}")
