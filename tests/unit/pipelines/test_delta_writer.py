"""Batches into a Delta table: each once, whoever else writes the same one. Spark is a stand-in here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType
from table_rows import Named, Rows, Typed

from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.files.sink import DeltaSink
from sskafka.pipelines.runner.delta import COMMIT_ATTEMPTS, STAGE, DeltaWriter
from sskafka.pipelines.runner.schema_evolution import SchemaChangeError

FILE = """\
name: copy
sources:
  numbers: {topic: numbers, schema: id long}
sinks:
  - delta: {path: delta}
"""


@pytest.fixture
def new_writer(tmp_path: Path) -> Callable[[], Any]:
    (tmp_path / "copy.yaml").write_text(FILE)
    pipeline = load_pipeline(tmp_path / "copy.yaml")
    (sink,) = pipeline.sinks
    assert isinstance(sink, DeltaSink)
    return lambda: DeltaWriter(pipeline, sink, "checkpoint")


def content(directory: Path) -> list[int]:
    found: list[int] = deltalake.DeltaTable(directory / "delta").to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


def test_a_batch_that_is_run_again_is_left_out(new_writer: Callable[[], Any], tmp_path: Path) -> None:
    new_writer()(Rows(1, 2), 0)
    new_writer()(Rows(3), 1)
    new_writer()(Rows(3), 1)
    assert content(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("batch", [0, 1])
def test_of_two_runs_that_write_a_batch_at_once_one_writes_it(
    new_writer: Callable[[], Any], tmp_path: Path, batch: int
) -> None:
    for before in range(batch):
        new_writer()(Rows(before), before)

    def other_run() -> None:
        new_writer()(Rows(batch), batch)

    new_writer()(Rows(batch, meanwhile=other_run), batch)
    assert content(tmp_path) == list(range(batch + 1))


def test_with_a_new_checkpoint_batches_count_anew(new_writer: Callable[[], Any], tmp_path: Path) -> None:
    for batch in range(3):
        new_writer()(Rows(batch), batch)
    new_writer()(Rows(3, query="another"), 0)
    assert content(tmp_path) == [0, 1, 2, 3]


def test_a_complete_result_that_is_empty_empties_the_table(tmp_path: Path) -> None:
    (tmp_path / "copy.yaml").write_text(FILE + "output_mode: complete\n")
    pipeline = load_pipeline(tmp_path / "copy.yaml")
    (sink,) = pipeline.sinks
    assert isinstance(sink, DeltaSink)
    writer = DeltaWriter(pipeline, sink, "checkpoint")
    writer(Rows(1, 2), 0)
    writer(Rows(), 1)
    assert content(tmp_path) == []


class Changes(Rows):
    """Rows with a column that says whether they are gone."""

    def __init__(self, changes: dict[int, bool | None]) -> None:
        super().__init__()
        self._changes = changes

    def content(self) -> pa.Table:
        gone = pa.array(self._changes.values(), pa.bool_())
        return pa.table({"id": pa.array(self._changes, pa.int64()), "gone": gone})

    def filter(self, condition: str) -> "Rows":
        assert condition == "`gone` is not true"
        return self

    def drop(self, column: str) -> "Rows":
        return Rows(*(number for number, is_gone in self._changes.items() if not is_gone))


def test_rows_go_where_the_delete_column_is_true_and_nowhere_else(tmp_path: Path) -> None:
    with_keys = FILE.replace("{path: delta}", "{path: delta, merge_keys: [id], delete_column: gone}")
    (tmp_path / "copy.yaml").write_text(with_keys + "output_mode: update\n")
    pipeline = load_pipeline(tmp_path / "copy.yaml")
    (sink,) = pipeline.sinks
    assert isinstance(sink, DeltaSink)
    writer = DeltaWriter(pipeline, sink, "checkpoint")
    writer(Changes({1: None, 2: False, 3: True}), 0)
    assert content(tmp_path) == [1, 2]
    writer(Changes({1: True, 2: None, 4: None, 5: False, 6: True}), 1)
    assert content(tmp_path) == [2, 4, 5]


def writer_of(directory: Path, sink: str, more: str = "") -> DeltaWriter:
    (directory / "copy.yaml").write_text(FILE.replace("{path: delta}", sink) + more)
    pipeline = load_pipeline(directory / "copy.yaml")
    (delta,) = pipeline.sinks
    assert isinstance(delta, DeltaSink)
    return DeltaWriter(pipeline, delta, "checkpoint")


def rows_of(directory: Path) -> list[tuple[int, str | None]]:
    table = deltalake.DeltaTable(directory / "delta").to_pyarrow_table()
    return sorted((row["id"], row["name"]) for row in table.to_pylist())


def test_partitions_may_have_any_value(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, "{path: delta, partition_by: name}")
    names = {1: "a", 2: "b c/d=e%20", 3: None, 4: "ü", 5: "a"}
    writer(Named(names), 0)
    writer(Named({6: "ü"}), 1)
    assert rows_of(tmp_path) == sorted({**names, 6: "ü"}.items())
    assert (tmp_path / "delta" / "name=a").is_dir()
    only = deltalake.DeltaTable(tmp_path / "delta").to_pyarrow_table(filters=[("name", "=", "ü")])
    assert sorted(only["id"].to_pylist()) == [4, 6]


def test_partitions_may_be_any_double(tmp_path: Path) -> None:
    nan, infinity = float("nan"), float("inf")
    values = [nan, None, 1.5, 0.0, -0.0, nan, infinity, -infinity]
    writer_of(tmp_path, "{path: delta, partition_by: value}")(Typed(DoubleType(), pa.array(values)), 0)
    table = deltalake.DeltaTable(tmp_path / "delta").to_pyarrow_table().sort_by("id")
    assert list(map(str, table["value"].to_pylist())) == list(map(str, values))
    folders = {path.name for path in (tmp_path / "delta").glob("value=*")}
    assert folders == {
        "value=NaN",
        "value=None",
        "value=1.5",
        "value=0.0",
        "value=-0.0",
        "value=Infinity",
        "value=-Infinity",
    }


def test_files_carry_the_statistics_that_readers_skip_by(tmp_path: Path) -> None:
    writer_of(tmp_path, "{path: delta}")(Named({3: "x", 9: None, 5: "long" * 20}), 0)
    (action,) = pa.table(deltalake.DeltaTable(tmp_path / "delta").get_add_actions(flatten=True)).to_pylist()
    assert (action["num_records"], action["min.id"], action["max.id"], action["null_count.name"]) == (3, 3, 9, 1)
    assert action.get("max.name") is None  # too long to stand for itself


def test_a_new_column_is_refused_unless_the_sink_evolves(tmp_path: Path) -> None:
    writer_of(tmp_path, "{path: delta}")(Rows(1), 0)
    with pytest.raises(SchemaChangeError, match=r"has no column name; it has id\. Set `evolve: true`"):
        writer_of(tmp_path, "{path: delta}")(Named({2: "b"}), 1)
    writer_of(tmp_path, "{path: delta, evolve: true}")(Named({2: "b"}), 1)
    writer_of(tmp_path, "{path: delta, evolve: true}")(Named({2: "b"}), 1)
    writer_of(tmp_path, "{path: delta}")(Rows(3), 2)
    assert rows_of(tmp_path) == [(1, None), (2, "b"), (3, None)]


def test_a_merge_evolves_too_and_leaves_no_files_behind(tmp_path: Path) -> None:
    mode = "output_mode: update\n"
    writer_of(tmp_path, "{path: delta, merge_keys: [id]}", mode)(Rows(1, 2), 0)
    with pytest.raises(SchemaChangeError):
        writer_of(tmp_path, "{path: delta, merge_keys: [id]}", mode)(Named({2: "b"}), 1)
    writer_of(tmp_path, "{path: delta, merge_keys: [id], evolve: true}", mode)(Named({2: "b", 3: "c"}), 1)
    assert rows_of(tmp_path) == [(1, None), (2, "b"), (3, "c")]
    assert list((tmp_path / "delta" / STAGE).iterdir()) == []


KEYS, UPDATE = "{path: delta, merge_keys: [id]}", "output_mode: update\n"


@pytest.mark.parametrize(("sink", "more"), [("{path: delta}", ""), (KEYS, UPDATE)])
def test_queries_that_write_at_once_both_write_their_batches(tmp_path: Path, sink: str, more: str) -> None:
    def backfill(*numbers: int, of_sink: str = sink) -> Callable[[], None]:
        names = Named(dict.fromkeys(numbers, "b"), query="backfill")
        return lambda: writer_of(tmp_path, of_sink.replace("}", ", evolve: true}"), more)(names, 1)

    writer_of(tmp_path, sink, more)(
        Rows(1, meanwhile=lambda: writer_of(tmp_path, sink, more)(Rows(2, query="other"), 0)), 0
    )
    writer_of(tmp_path, sink, more)(Rows(3, meanwhile=backfill(4)), 1)
    assert rows_of(tmp_path) == [(1, None), (2, None), (3, None), (4, "b")]


def test_two_merges_of_the_same_key_leave_one_row(tmp_path: Path) -> None:
    def writer() -> DeltaWriter:
        return writer_of(tmp_path, KEYS, UPDATE)

    writer()(Rows(1), 0)
    writer()(Rows(2, meanwhile=lambda: writer()(Rows(2, query="backfill"), 1)), 1)
    writer()(Rows(3, meanwhile=lambda: writer()(Rows(3), 2)), 2)
    assert content(tmp_path) == [1, 2, 3]
    assert list((tmp_path / "delta" / STAGE).iterdir()) == []


def test_only_the_stages_of_a_killed_run_of_the_same_query_are_deleted(tmp_path: Path) -> None:
    writer_of(tmp_path, KEYS, UPDATE)(Rows(1), 0)
    for name in ("q-killed", "other-running"):
        (tmp_path / "delta" / STAGE / name).mkdir(parents=True)
    writer_of(tmp_path, KEYS, UPDATE)(Rows(2), 1)
    assert [path.name for path in (tmp_path / "delta" / STAGE).iterdir()] == ["other-running"]


def test_a_table_that_refuses_every_commit_ends_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[int] = []

    def refuse(writer: DeltaWriter, table: object, content: object, batch: int) -> None:
        refused.append(batch)
        raise deltalake.exceptions.CommitFailedError

    writer_of(tmp_path, KEYS, UPDATE)(Rows(1), 0)
    monkeypatch.setattr(DeltaWriter, "_merge_from", refuse)
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        writer_of(tmp_path, KEYS, UPDATE)(Rows(2), 1)
    assert refused == [1] * COMMIT_ATTEMPTS
    assert list((tmp_path / "delta" / STAGE).iterdir()) == []


INTS, LONGS = Typed(IntegerType(), pa.array([5], pa.int32())), Typed(LongType(), pa.array([2**40], pa.int64()))
TEXTS = Typed(StringType(), pa.array(["five"]))


@pytest.mark.parametrize(("sink", "more"), [("{path: delta, evolve: true}", ""), (KEYS, UPDATE)])
@pytest.mark.parametrize(("rows", "kind"), [(TEXTS, "string"), (LONGS, "bigint")])
def test_a_changed_type_is_refused_and_the_table_stays_readable(
    tmp_path: Path, sink: str, more: str, rows: Rows, kind: str
) -> None:
    writer_of(tmp_path, sink, more)(INTS, 0)
    with pytest.raises(SchemaChangeError, match=rf"the column value with the type int, .* with the type {kind}\. Cast"):
        writer_of(tmp_path, sink, more)(rows, 1)
    assert content(tmp_path) == [0]


@pytest.mark.parametrize(("sink", "more"), [("{path: delta}", ""), (KEYS, UPDATE)])
def test_a_narrower_type_is_read_as_that_of_the_table(tmp_path: Path, sink: str, more: str) -> None:
    writer_of(tmp_path, sink, more)(LONGS, 0)
    writer_of(tmp_path, sink, more)(Typed(IntegerType(), pa.array([5], pa.int32()), [1]), 1)
    table = deltalake.DeltaTable(tmp_path / "delta").to_pyarrow_table()
    assert sorted(table["value"].to_pylist()) == [5, 2**40]


def test_a_complete_result_may_have_other_types(tmp_path: Path) -> None:
    for batch, rows in enumerate((INTS, TEXTS)):
        writer_of(tmp_path, "{path: delta}", "output_mode: complete\n")(rows, batch)
    assert deltalake.DeltaTable(tmp_path / "delta").to_pyarrow_table()["value"].to_pylist() == ["five"]
