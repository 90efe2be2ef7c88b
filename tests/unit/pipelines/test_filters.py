"""Filters that narrow a batch read. Whatever they leave out, the answer is the same once Spark has applied the filters
that were returned to it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from sskafka.client.offsets import NO_OFFSET
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.filters import Narrowing, narrowing_of
from sskafka.pipelines.connector.offsets import OffsetRange

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPARING = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None = None


def at(milliseconds: float) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


class Log:
    """A fake of the brokers: records in partitions, and ListOffsets by time."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.asked: list[Mapping[TopicPartition, int]] = []

    def ranges(self) -> list[OffsetRange]:
        ends: dict[TopicPartition, int] = {}
        for row in self.rows:
            partition = TopicPartition(row.topic, row.partition)
            ends[partition] = max(ends.get(partition, 0), row.offset + 1)
        return [OffsetRange(partition, 0, end) for partition, end in sorted(ends.items())]

    def first_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self.asked.append(timestamps)
        return {
            partition: min(
                (
                    row.offset
                    for row in self.rows
                    if (row.topic, row.partition) == partition and row.timestamp >= at(timestamp)
                ),
                default=NO_OFFSET,
            )
            for partition, timestamp in timestamps.items()
        }

    def read(self, narrowing: Narrowing) -> list[Row]:
        ranges = {part.partition: part for part in narrowing.narrowed(self.ranges(), self.first_at)}
        read = []
        for row in self.rows:
            part = ranges.get(TopicPartition(row.topic, row.partition))
            if part is not None and part.start <= row.offset < part.end:
                read.append(row)
        return read


def is_true(one: Filter, row: Row) -> bool:
    return sql(one, row) is True


def sql(one: Any, row: Row) -> bool | None:
    """The value of a filter by the logic of SQL."""
    if isinstance(one, Not):
        value = sql(one.child, row)
        return None if value is None else not value
    mine = getattr(row, one.attribute[0])
    if isinstance(one, IsNull | IsNotNull):
        return (mine is None) == isinstance(one, IsNull)
    if isinstance(one, EqualNullSafe):
        return bool(mine == one.value)
    if isinstance(one, In):
        if mine is None or mine in one.value:
            return None if mine is None else True
        return None if None in one.value else False
    if mine is None or one.value is None:
        return None
    results = {
        EqualTo: lambda: mine == one.value,
        GreaterThan: lambda: mine > one.value,
        GreaterThanOrEqual: lambda: mine >= one.value,
        LessThan: lambda: mine < one.value,
        LessThanOrEqual: lambda: mine <= one.value,
        StringStartsWith: lambda: mine.startswith(one.value),
        StringEndsWith: lambda: mine.endswith(one.value),
        StringContains: lambda: one.value in mine,
    }
    return bool(results[type(one)]())


topics = st.sampled_from(["a", "ab", "b"])
times = st.integers(-2, 12).map(at) | st.integers(-2_000, 12_000).map(lambda us: EPOCH + timedelta(microseconds=us))
values = {
    "topic": topics,
    "partition": st.integers(-1, 3),
    "offset": st.integers(-2, 14),
    "timestamp": times,
    "key": st.binary(max_size=1),
}


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Offsets have gaps, as compaction leaves them; timestamps are in any order."""
    rows = []
    for topic in draw(st.lists(topics, unique=True)):
        for partition in range(draw(st.integers(1, 3))):
            offsets = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
            rows += [Row(topic, partition, offset, at(draw(st.integers(0, 10)))) for offset in offsets]
    return Log(rows)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    column = draw(st.sampled_from(sorted(values)))
    value = draw(values[column] | (st.none() if draw(st.integers(0, 9)) == 0 else values[column]))
    kinds: list[Filter] = [kind((column,), value) for kind in COMPARING]
    kinds += [In((column,), tuple(draw(st.lists(values[column] | st.none(), max_size=3))))]
    kinds += [IsNull((column,)), IsNotNull((column,))]
    if column == "topic" and value is not None:
        kinds += [kind((column,), value) for kind in (StringStartsWith, StringEndsWith, StringContains)]
    one = draw(st.sampled_from(kinds))
    return Not(one) if draw(st.booleans()) else one


@given(logs(), st.lists(filters(), max_size=4))
def test_the_answer_is_that_of_a_read_without_filters(log: Log, pushed: list[Filter]) -> None:
    narrowing, left = narrowing_of(pushed)
    answer = [row for row in log.read(narrowing) if all(is_true(one, row) for one in left)]
    assert answer == [row for row in log.rows if all(is_true(one, row) for one in pushed)]


ROWS = [Row(topic, partition, offset, at(offset)) for topic in "ab" for partition in (0, 1) for offset in range(10)]


@pytest.mark.parametrize(
    ("pushed", "read", "left"),
    [
        ([EqualTo(("topic",), "a")], 20, 0),
        ([Not(In(("topic",), ("a", "c"))), EqualTo(("partition",), 1)], 10, 0),
        ([GreaterThan(("offset",), 2), LessThan(("offset",), 5)], 8, 0),
        ([EqualTo(("offset",), 3), IsNotNull(("offset",))], 4, 0),
        ([In(("offset",), (2, 6))], 20, 1),
        ([GreaterThanOrEqual(("timestamp",), at(7))], 12, 1),
        ([GreaterThan(("timestamp",), at(100))], 0, 1),
        ([LessThan(("timestamp",), at(3))], 40, 1),
        ([GreaterThan(("timestamp",), at(7).replace(tzinfo=None))], 40, 1),
        ([EqualTo(("key",), b"k")], 40, 1),
        ([EqualTo(("offset",), None)], 40, 1),
        ([LessThan(("offset",), 0)], 0, 0),
    ],
    ids=str,
)
def test_what_is_read_and_what_is_left_to_spark(pushed: list[Filter], read: int, left: int) -> None:
    narrowing, returned = narrowing_of(pushed)
    assert (len(Log(ROWS).read(narrowing)), len(returned)) == (read, left)


def test_brokers_are_asked_only_for_partitions_that_are_left() -> None:
    log = Log(ROWS)
    young = GreaterThan(("timestamp",), at(4))
    log.read(narrowing_of([EqualTo(("topic",), "b"), EqualTo(("partition",), 0), young])[0])
    assert log.asked == [{TopicPartition("b", 0): 4}]
    log.read(narrowing_of([EqualTo(("topic",), "c"), young])[0])
    assert len(log.asked) == 1
