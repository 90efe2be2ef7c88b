"""Batches into a Delta table: each once, whoever else writes the same one. Spark is a stand-in here."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from sskafka.pipelines.files.model import DeltaSink
from sskafka.pipelines.files.parse import load_pipeline
from sskafka.pipelines.runner.delta import DeltaWriter

FILE = """\
name: copy
sources:
  numbers: {topic: numbers, schema: id long}
sinks:
  - delta: {path: delta}
"""


class Rows:
    """As much of a DataFrame as is used; `meanwhile` is called while its rows are collected."""

    def __init__(self, *numbers: int, query: str = "q", meanwhile: Callable[[], None] = lambda: None) -> None:
        self._numbers = numbers
        self._meanwhile = meanwhile
        line = (json.dumps({"id": query}),)
        self.sparkSession = SimpleNamespace(
            read=SimpleNamespace(text=lambda _: SimpleNamespace(collect=lambda: [line]))
        )

    def toArrow(self) -> pa.Table:
        self._meanwhile()
        return pa.table({"id": pa.array(self._numbers, pa.int64())})


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
def test_of_two_runs_that_write_a_batch_at_once_one_is_refused(
    new_writer: Callable[[], Any], tmp_path: Path, batch: int
) -> None:
    for before in range(batch):
        new_writer()(Rows(before), before)

    def other_run() -> None:
        new_writer()(Rows(batch), batch)

    with pytest.raises(deltalake.exceptions.DeltaError):
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

    def toArrow(self) -> pa.Table:
        gone = pa.array(self._changes.values(), pa.bool_())
        return pa.table({"id": pa.array(self._changes, pa.int64()), "gone": gone})


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
