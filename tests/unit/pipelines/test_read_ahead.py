"""Rows that the planning process of Spark sends with the plan of a small micro-batch."""

import io
import json
import sys
from collections.abc import Coroutine
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming import python_streaming_source_runner as spark_runner

from sskafka.client.errors import RequestTimeoutError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector import read_ahead
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import source_options
from sskafka.pipelines.connector.read_ahead import BYTES_MAX, PLANNING, RECORDS_MAX, ReadAhead, install, is_small

START, END = {"a": {"0": 0}}, {"a": {"0": 2}}
RANGES = [OffsetRange(TopicPartition("a", 0), 0, 2)]
OPTIONS = source_options({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"}, streaming=True)
ROWS = pa.RecordBatch.from_pydict({"value": [b"one", b"two"]})


class Session:
    """Runs coroutines that wait for nothing."""

    cluster = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            work.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("it waits")


class Reading:
    """Two fetches, each with rows or an error."""

    def __init__(self, *fetches: pa.RecordBatch | Exception) -> None:
        self._fetches = list(fetches)
        self.is_closed = self.is_sent = False

    @property
    def is_done(self) -> bool:
        return not self._fetches

    async def send_next(self) -> None:
        self.is_sent = True

    async def received_rows(self) -> list[pa.RecordBatch]:
        fetched = self._fetches.pop(0)
        if isinstance(fetched, Exception):
            raise fetched
        return [fetched]

    async def close(self) -> None:
        self.is_closed = True


def ahead(monkeypatch: pytest.MonkeyPatch, reading: Reading) -> ReadAhead:
    monkeypatch.setattr(read_ahead, "Reading", lambda *_: reading)
    return ReadAhead(Session(), OPTIONS, RANGES, START, END)  # type: ignore[arg-type]


def test_the_fetch_is_sent_at_once_and_its_rows_are_taken_later(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(ROWS, ROWS)
    rows = ahead(monkeypatch, reading)
    assert reading.is_sent
    assert rows.is_between(START, END)
    assert not rows.is_between(END, END)
    assert rows.rows() == [ROWS, ROWS]
    assert reading.is_closed


@pytest.mark.parametrize(
    "fetched", [RequestTimeoutError("too slow"), pa.RecordBatch.from_pydict({"value": [b"x" * (BYTES_MAX + 1)]})]
)
def test_tasks_read_what_is_large_or_cannot_be_read_here(monkeypatch: pytest.MonkeyPatch, fetched: Any) -> None:
    reading = Reading(ROWS, fetched, ROWS)
    assert ahead(monkeypatch, reading).rows() is None
    assert reading.is_closed


@pytest.mark.parametrize(("sizes", "small"), [([[2, 3]], True), ([[RECORDS_MAX + 1]], False), ([[1], [1]], False)])
def test_one_task_of_few_records_is_small(sizes: list[list[int]], small: bool) -> None:
    tasks = [[OffsetRange(TopicPartition("a", 0), 0, size) for size in task] for task in sizes]
    assert is_small(tasks) is small


class Reader:
    """Has planned one task, and may have read its rows."""

    def __init__(self, rows: list[pa.RecordBatch] | None) -> None:
        self._rows = rows

    def partitions(self, start: Any, end: Any) -> list[str]:
        assert (start, end) == (START, END)
        return ["the task"]

    def take_rows(self, start: Any, end: Any) -> list[pa.RecordBatch] | None:
        assert (start, end) == (START, END)
        return self._rows


@pytest.fixture
def planning(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A process that has started Spark's own module as its main module."""
    main = ModuleType("__main__")
    main.__dict__.update({name: value for name, value in vars(spark_runner).items() if not name.startswith("__")})
    main.__spec__ = ModuleSpec(PLANNING, None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    return main


def sent(planning: ModuleType, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, list[Any]]:
    """What Java receives, and the rows among it."""
    rows: list[Any] = []
    monkeypatch.setattr(planning, "send_batch_func", lambda batches, *_: rows.extend(batches))
    infile, outfile = io.BytesIO(), io.BytesIO()
    for offsets in (START, END):
        spark_runner.write_with_length(json.dumps(offsets).encode(), infile)
    infile.seek(0)
    planning.partitions_func(reader, None, None, 100, infile, outfile)
    return outfile.getvalue(), rows


def test_java_receives_the_plan_and_then_the_rows(planning: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    original, _ = sent(planning, Reader(None), monkeypatch)
    assert install()
    assert planning.partitions_func is not spark_runner.partitions_func
    assert sent(planning, Reader(None), monkeypatch) == (original, [])
    plan, rows = sent(planning, Reader([ROWS]), monkeypatch)
    assert rows == [ROWS]
    assert original.startswith(plan)


def test_other_processes_and_other_versions_of_spark_are_left_alone(
    planning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    del planning.send_batch_func
    assert not install()
    monkeypatch.setattr(planning, "__spec__", ModuleSpec("pyspark.daemon", None))
    assert not install()
    assert planning.partitions_func is spark_runner.partitions_func
