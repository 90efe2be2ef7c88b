"""Where a stream's next micro-batch ends, decided without a cluster."""

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector import source
from sskafka.pipelines.connector.offsets import OffsetRange, Offsets, OffsetsJson, first_start, from_json
from sskafka.pipelines.connector.options import source_options
from sskafka.pipelines.connector.planning import LogEnds
from sskafka.pipelines.connector.source import StreamReader

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"}
MINUTE = 60.0


class Log:
    """Stands for the planner: the ends of partitions, and a clock."""

    def __init__(self) -> None:
        self.offsets: Offsets = {TopicPartition("a", 0): 10, TopicPartition("a", 1): 0}
        self.now = 1_000.0
        self.planned: list[tuple[OffsetsJson, OffsetsJson]] = []

    def tasks_between(self, start: OffsetsJson, end: OffsetsJson, ends: object) -> list[list[OffsetRange]]:
        self.planned.append((start, end))
        return []

    def latest(self) -> Offsets:
        return dict(self.offsets)

    def ends(self, expected: object, *, with_earliest: bool) -> LogEnds:
        return LogEnds(self.latest(), self.earliest(list(self.offsets)) if with_earliest else None)

    starting = latest

    def topic_ids(self, topics: Any) -> dict[str, str]:
        return {}

    known_ids = topic_ids

    def earliest(self, partitions: list[TopicPartition]) -> Offsets:
        return dict.fromkeys(partitions, 0)

    def append(self, count: int, partition: int = 0) -> None:
        self.offsets[TopicPartition("a", partition)] += count


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(StreamReader, "_planner", lambda _: log)
    monkeypatch.setattr(StreamReader, "_begin_group_commit", lambda *_: None)
    monkeypatch.setattr(source.time, "monotonic", lambda: log.now)
    return log


def reader(**options: str) -> StreamReader:
    return StreamReader(source_options({**BASE, **options}, streaming=True))


def ends(stream: StreamReader, start: OffsetsJson, limit: Any = None) -> OffsetsJson:
    return stream.latestOffset(start, limit or stream.getDefaultReadLimit())


def at(first: int, second: int = 0) -> OffsetsJson:
    return {"a": {"0": first, "1": second}}


def test_the_first_batch_waits_for_nothing_and_the_next_for_enough(log: Log) -> None:
    stream = reader(minOffsetsPerTrigger="50")
    assert ends(stream, at(0)) == at(10)
    log.append(30)
    assert ends(stream, at(10)) == at(10)
    log.append(19, partition=1)
    assert ends(stream, at(10)) == at(10)
    log.append(1)
    assert ends(stream, at(10)) == at(41, 19)
    log.append(49)
    assert ends(stream, at(41, 19)) == at(41, 19)


def test_nobody_waits_longer_than_the_delay(log: Log) -> None:
    stream = reader(minOffsetsPerTrigger="50", maxTriggerDelay="2m")
    assert ends(stream, at(0)) == at(10)
    log.append(1)
    log.now += 2 * MINUTE - 1
    assert ends(stream, at(10)) == at(10)
    log.now += 1
    assert ends(stream, at(10)) == at(11)
    log.append(1)
    assert ends(stream, at(11)) == at(11)


def test_least_and_most_together(log: Log) -> None:
    stream = reader(minOffsetsPerTrigger="20", maxOffsetsPerTrigger="40")
    assert stream.getDefaultReadLimit() == ReadMaxRows(40)
    assert ends(stream, at(0)) == at(10)
    log.append(60)
    assert ends(stream, at(10)) == at(50)
    assert ends(stream, at(50)) == at(70)


def test_what_is_there_now_is_read_to_its_end(log: Log) -> None:
    stream = reader(minOffsetsPerTrigger="50")
    stream.prepareForTriggerAvailableNow()
    log.append(5)
    assert ends(stream, at(0), ReadAllAvailable()) == at(10)
    assert ends(stream, at(10), ReadAllAvailable()) == at(10)


def test_a_log_that_is_shorter_than_it_was_is_not_waited_for(log: Log) -> None:
    """An end before the start is what tells it; where data may be lost the stream goes on there."""
    for stream in (reader(), reader(maxOffsetsPerTrigger="3")):
        assert ends(stream, at(500)) == at(10)
        stream.prepareForTriggerAvailableNow()
        assert ends(stream, at(500)) == at(10)


def test_a_stream_starts_where_it_said_first_although_records_arrive(log: Log) -> None:
    """Spark asks for the start once to plan the end of the first batch, and again to read it."""
    stream = reader(startingOffsets="latest")
    assert stream.initialOffset() == at(10)
    log.append(5)
    assert from_json(ends(stream, at(10))) == from_json(at(15))
    log.append(7)
    assert stream.initialOffset() == at(10)


def test_the_end_of_the_first_batch_says_where_the_batch_begins(log: Log) -> None:
    """A restart repeats the batch between an `initialOffset` of its own and this end."""
    stream = reader(startingOffsets="latest")
    start = stream.initialOffset()
    empty = ends(stream, start)
    assert empty == {"#first": at(10), **at(10)}, "Spark plans the first batch although nothing is there"
    log.append(5)
    end = ends(stream, start)
    assert end == {"#first": at(10), **at(15)}
    assert ends(stream, end) == end, "there is nothing new"
    log.append(1)
    assert ends(stream, end) == at(16)
    assert first_start(end) == first_start(empty) == at(10)
    assert from_json(end) == from_json(at(15))


def test_a_first_batch_that_is_repeated_begins_where_it_began(log: Log) -> None:
    stream = reader(startingOffsets="latest")
    end = ends(stream, stream.initialOffset())
    log.append(10)
    again = reader(startingOffsets="latest")
    start = again.initialOffset()
    assert start == at(20)
    assert again.partitions(start, end) == []
    assert log.planned == [(at(10), end)]
