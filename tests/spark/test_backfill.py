"""Backfills: a range of records goes to every sink once, beside the pipeline itself and whoever is killed."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow.parquet as pq
import pytest
from derby import Derby
from process_session import ProcessSession
from pyiceberg.catalog import load_catalog

from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.sink import ParquetSink
from sskafka.pipelines.runner.backfill import BackfillResult, run_backfill
from sskafka.pipelines.runner.backfill_range import RangeError, parse_range
from sskafka.pipelines.runner.dead_letters import DeadLetters
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.run import RunSettings, run_pipeline
from sskafka.pipelines.shipped.reading import committed_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VISIBLE_WITHIN_S = 30
FILE = """\
name: {topic}
sources:
  numbers:
    topic: {topic}
    schema: id long not null
    expectations: [{{name: even, check: id % 2 = 0, action: warn}}]
sinks:
  - delta: {{path: delta}}
  - iceberg:
      table: shop.numbers
      catalog: {{type: sql, uri: "sqlite:///{directory}/catalog.db", warehouse: lake}}
  - jdbc: {{url: "jdbc:derby:{directory}/database;create=true", table: numbers}}
  - topic: {{topic: {topic}-out, key: id}}
  - parquet: {{path: parquet}}
transform: {{sql: "select id from numbers"}}
trigger: available-now
"""


class Sinks:
    """What is in each sink of the file."""

    def __init__(self, spark: "SparkSession", directory: Path, bootstrap: str, topic: str) -> None:
        self._directory = directory
        self._bootstrap = bootstrap
        self._topic = topic
        self._derby = Derby(spark, directory / "database")

    def close(self) -> None:
        self._derby.close()

    def delta(self) -> list[int]:
        return sorted(deltalake.DeltaTable(self._directory / "delta").to_pyarrow_table()["id"].to_pylist())

    def iceberg(self) -> list[int]:
        properties = {"uri": f"sqlite:///{self._directory}/catalog.db", "warehouse": str(self._directory)}
        table = load_catalog("default", type="sql", **properties).load_table("shop.numbers")
        return sorted(table.scan().to_arrow()["id"].to_pylist())

    def jdbc(self) -> list[int]:
        return sorted(row["id"] for row in self._derby.rows("numbers"))

    def parquet(self, name: str = "parquet-backfill-*") -> list[int]:
        return sorted(one for path in self._directory.glob(name) for one in pq.read_table(path)["id"].to_pylist())

    def out(self, count: int) -> list[int]:
        """Commits are answered when they are decided; brokers write markers after that."""
        deadline = time.monotonic() + VISIBLE_WITHIN_S
        while True:
            values = [value for _, value in committed_records(self._bootstrap, f"{self._topic}-out")]
            if len(values) >= count or time.monotonic() > deadline:
                return sorted(json.loads(value or b"{}")["id"] for value in values)


@pytest.fixture
def topic(new_topic: Callable[..., str], produce: Callable[..., None]) -> str:
    """20 numbers in each of two partitions, and a record that is none."""
    topic = new_topic(2, "numbers")
    for partition in range(2):
        produce(topic, [b'{"id": %d}' % number for number in range(partition, 20, 2)], partition, 1_000_000)
        produce(topic, [b'{"id": %d}' % number for number in range(20 + partition, 40, 2)], partition, 2_000_000)
    produce(topic, [b"none"], 0, 3_000_000)
    return topic


@pytest.fixture
def pipeline(tmp_path: Path, topic: str) -> Pipeline:
    path = tmp_path / "pipeline.yaml"
    path.write_text(FILE.format(topic=topic, directory=tmp_path))
    return load_pipeline(path)


@pytest.fixture
def sinks(spark: "SparkSession", tmp_path: Path, bootstrap: str, topic: str) -> Iterator[Sinks]:
    sinks = Sinks(spark, tmp_path, bootstrap, topic)
    yield sinks
    sinks.close()


@pytest.fixture
def backfill(spark: "SparkSession", bootstrap: str) -> Callable[..., BackfillResult]:
    def run(pipeline: Pipeline, start: str, end: str, **options: Any) -> BackfillResult:
        return run_backfill(pipeline, parse_range(start, end), RunSettings(bootstrap, "local[2]"), **options)

    return run


def test_a_range_of_offsets_goes_to_every_sink_once_beside_the_pipeline_itself(
    bootstrap: str,
    session: ClusterSession,
    pipeline: Pipeline,
    topic: str,
    sinks: Sinks,
    backfill: Callable[..., BackfillResult],
) -> None:
    (parquet,) = (sink for sink in pipeline.sinks if isinstance(sink, ParquetSink))
    run_pipeline(replace(pipeline, sinks=(parquet,)), RunSettings(bootstrap, "local[2]"))
    checkpoint = Path(pipeline.checkpoint_root)
    before = sorted((file, file.stat().st_mtime_ns) for file in checkpoint.rglob("*"))
    start, end = f"{topic}:0:5,{topic}:1:5", f"{topic}:0:21,{topic}:1:10"
    first = backfill(pipeline, start, end)
    expected = [*range(10, 20), *range(20, 40, 2)]  # partition 0 from 5 on, partition 1 from 5 to 9
    assert first.finished_before == ""
    counts = {query.query: (query.rows_in, query.rows_out) for query in first.run.queries}
    assert counts == {
        **dict.fromkeys(("delta", "iceberg", "jdbc", "topic", "parquet"), (21, 20)),
        "dead-letters": (21, 1),
    }
    assert first.run.unmet == {"even": 5}
    assert sinks.delta() == sinks.iceberg() == sinks.jdbc() == sinks.out(20) == sinks.parquet() == expected
    letters = list(DeadLetters(session, bootstrap, pipeline.dead_letter_topic).waiting())
    assert [letter.offset for letter in letters] == [20, 20], "one of the pipeline, one of the backfill"
    assert sorted((file, file.stat().st_mtime_ns) for file in checkpoint.rglob("*")) == before
    assert sinks.parquet("parquet") == list(range(40)), "what the pipeline has written is as it was"

    assert backfill(pipeline, start, end).finished_before
    again = backfill(pipeline, start, end, again=True)
    assert (again.finished_before, again.run.rows_in) == ("", 21)
    assert sinks.delta() == sinks.jdbc() == sinks.out(40) == sorted([*expected, *expected])
    assert sinks.parquet() == expected
    with pytest.raises(RangeError, match=f"{topic}-7 is not read by"):
        backfill(pipeline, f"{topic}:7:0", "")


@pytest.mark.long
def test_a_backfill_that_is_killed_or_stopped_goes_on_with_what_is_missing(
    bootstrap: str,
    pipeline: Pipeline,
    sinks: Sinks,
    backfill: Callable[..., BackfillResult],
    tmp_path: Path,
) -> None:
    program = Path(__file__).parent / "backfill_program.py"
    for sink in ("delta", "topic"):
        command = [sys.executable, program, pipeline.path, bootstrap, "1000000", "1970-01-01T00:50:00Z", sink]
        killed = ProcessSession([str(part) for part in command], tmp_path / f"{sink}.log")
        try:
            assert killed.wait() == -9, killed.talk()
            killed.wait_until_gone()
        finally:
            killed.close()
    stop = threading.Event()
    stopped = backfill(pipeline, "1000000", "3000000", stop=stop, on_progress=lambda _: stop.set())
    assert stopped.is_stopped
    assert not sinks.parquet()
    result = backfill(pipeline, "1000000", "3000000")
    assert not result.is_stopped
    assert sinks.delta() == sinks.iceberg() == sinks.jdbc() == sinks.out(40) == list(range(40))
    assert sinks.parquet() == list(range(40))


STOPPED = """\
name: {topic}
sources: {{numbers: {{topic: {topic}, schema: id long not null}}}}
sinks:
  - parquet: {{path: one, name: one}}
  - parquet: {{path: two, name: two}}
  - parquet: {{path: three, name: three}}
after: ending.py:end
lineage: file:{directory}/lineage.jsonl
trigger: available-now
"""


def test_a_stopped_backfill_is_not_complete_until_its_function_has_returned(
    topic: str, backfill: Callable[..., BackfillResult], tmp_path: Path
) -> None:
    path, function = tmp_path / "pipeline.yaml", tmp_path / "ending.py"
    path.write_text(STOPPED.format(topic=topic, directory=tmp_path))
    function.write_text("def end(pipeline):\n    raise ValueError('no disk')\n")
    pipeline = load_pipeline(path)
    stop = threading.Event()
    assert backfill(pipeline, "", "3000000", stop=stop, on_progress=lambda _: stop.set()).is_stopped
    assert [len(list(tmp_path.glob(f"{name}-backfill-*"))) for name in ("one", "two", "three")] == [1, 0, 0]
    with pytest.raises(PipelineRunError, match="ValueError: no disk"):
        backfill(pipeline, "", "3000000")
    function.write_text("def end(pipeline):\n    return 'complete'\n")
    told: list[str] = []
    result = backfill(pipeline, "", "3000000", tell=told.append)
    assert (result.finished_before, result.is_stopped, told) == ("", False, ["complete"])
    assert backfill(pipeline, "", "3000000").finished_before
    events = [json.loads(line)["eventType"] for line in (tmp_path / "lineage.jsonl").read_text().splitlines()]
    assert events == ["START", "ABORT", "START", "FAIL"]


WINDOWS = """\
name: {topic}
sources:
  clicks:
    topic: {topic}
    schema: user string, at timestamp
    event_time: at
    watermark: 10 minutes
transform:
  sql: >
    select window(at, '1 hour').start as hour, count(*) as clicks from clicks group by window(at, '1 hour')
sinks:
  - parquet: {{path: hours}}
  - topic: {{topic: {topic}-out}}
output_mode: append
trigger: available-now
"""


def test_windows_end_with_a_range_of_time(
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    backfill: Callable[..., BackfillResult],
    tmp_path: Path,
) -> None:
    topic = new_topic(2, "clicks")
    for hour in range(4):
        for partition in range(2):
            clicks = [b'{"user": "u", "at": "2026-01-01T%02d:%02d:00Z"}' % (hour, minute) for minute in range(10)]
            produce(topic, clicks, partition, 1_767_225_600_000 + hour * 3_600_000)
    path = tmp_path / "pipeline.yaml"
    path.write_text(WINDOWS.format(topic=topic))
    result = backfill(load_pipeline(path), "2026-01-01T01:00:00Z", "2026-01-01T03:00:00Z")
    assert result.run.rows_in == 40
    (place,) = tmp_path.glob("hours-backfill-*")
    values = [json.loads(value or b"{}") for _, value in committed_records(bootstrap, f"{topic}-out")]
    assert sorted(value["clicks"] for value in values) == [20, 20]
    rows = sorted((row["hour"].isoformat()[:19], row["clicks"]) for row in pq.read_table(place).to_pylist())
    expected = [("2026-01-01T01:00:00", 20), ("2026-01-01T02:00:00", 20)]
    assert rows == expected, "also the last window, which no later record has ended"
