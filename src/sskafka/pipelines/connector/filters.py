"""Reduce what a batch read fetches by the filters that Spark pushes down.

    column       filters                           what is left out                                  Spark filters again
    ---------    ------------------------------    ----------------------------------------------    -------------------
    topic        all but those with a null         partitions                                        no
    partition    all but those with a null         partitions                                        no
    offset       =, <=>, <, <=, >, >=              offsets before and after                          no
                 in                                offsets before the lowest and after the highest   yes
    timestamp    =, <=>, >, >=, in                 offsets before the first record with at least     yes
                                                   this timestamp, as ListOffsets finds it

An upper bound of timestamps leaves nothing out: timestamps need not increase with offsets, so an old record may be
anywhere in a partition. A lower bound is safe, because ListOffsets returns the first such record in the order of
offsets: all records before it are older. Spark applies filters of other columns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

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
from sskafka.pipelines.connector.offsets import OffsetRange

TOPIC, PARTITION, OFFSET, TIMESTAMP = ("topic",), ("partition",), ("offset",), ("timestamp",)
TYPES: dict[tuple[str, ...], type] = {TOPIC: str, PARTITION: int, OFFSET: int, TIMESTAMP: datetime}
OFFSET_MAX = 2**63 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISONS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: lambda value, other: bool(value == other),
    EqualNullSafe: lambda value, other: bool(value == other),
    GreaterThan: lambda value, other: bool(value > other),
    GreaterThanOrEqual: lambda value, other: bool(value >= other),
    LessThan: lambda value, other: bool(value < other),
    LessThanOrEqual: lambda value, other: bool(value <= other),
    In: lambda value, others: value in others,
    StringStartsWith: lambda value, other: bool(value.startswith(other)),
    StringEndsWith: lambda value, other: bool(value.endswith(other)),
    StringContains: lambda value, other: other in value,
}

Lookup = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]
"""Returns the first offset at or after a timestamp in milliseconds for each partition, or NO_OFFSET."""


@dataclass(frozen=True)
class Narrowing:
    """The ranges that a batch need not read, by the filters of Spark."""

    of_partitions: tuple[Filter, ...] = ()
    """Filters of the columns topic and partition."""
    offset_min: int = 0
    offset_max: int = OFFSET_MAX
    timestamp_min_ms: int = -1
    """-1: no lower bound."""

    def narrowed(self, ranges: Iterable[OffsetRange], first_at: Lookup) -> list[OffsetRange]:
        """Return the ranges without what the filters leave out, and without empty ranges."""
        kept = [
            OffsetRange(part.partition, max(part.start, self.offset_min), min(part.end - 1, self.offset_max) + 1)
            for part in ranges
            if all(_is_met_by_partition(one, part.partition) for one in self.of_partitions)
        ]
        kept = [part for part in kept if part.size > 0]
        if self.timestamp_min_ms < 0 or not kept:
            return kept
        first = first_at({part.partition: self.timestamp_min_ms for part in kept})
        young = [part for part in kept if first[part.partition] != NO_OFFSET]
        late = [OffsetRange(part.partition, max(part.start, first[part.partition]), part.end) for part in young]
        return [part for part in late if part.size > 0]


def narrowing_of(filters: Sequence[Filter]) -> tuple[Narrowing, list[Filter]]:
    """Return what the filters leave out, and the filters that Spark must still apply."""
    narrowing = Narrowing()
    left = []
    for one in filters:
        narrowing, is_done = _with(narrowing, one)
        if not is_done:
            left.append(one)
    return narrowing, left


def _with(narrowing: Narrowing, one: Filter) -> tuple[Narrowing, bool]:
    column = _column(one)
    if column is None:
        return narrowing, False
    if isinstance(one, IsNotNull):  # these columns are never null
        return narrowing, True
    if column in {TOPIC, PARTITION}:
        return replace(narrowing, of_partitions=(*narrowing.of_partitions, one)), True
    bounds = _bounds(one)
    if bounds is None:
        return narrowing, False
    low, high = bounds
    if column == OFFSET:
        return _with_offsets(narrowing, one, low, high)
    if low is None:
        return narrowing, False
    return replace(narrowing, timestamp_min_ms=max(narrowing.timestamp_min_ms, _milliseconds(low))), False


def _with_offsets(narrowing: Narrowing, one: Filter, low: int | None, high: int | None) -> tuple[Narrowing, bool]:
    low = None if low is None else low + isinstance(one, GreaterThan)
    high = None if high is None else high - isinstance(one, LessThan)
    narrowed = replace(
        narrowing,
        offset_min=narrowing.offset_min if low is None else max(narrowing.offset_min, low),
        offset_max=narrowing.offset_max if high is None else min(narrowing.offset_max, high),
    )
    return narrowed, not isinstance(one, In)


def _column(one: Filter) -> tuple[str, ...] | None:
    """Return the column of the filter if this module can apply the filter, else None."""
    if isinstance(one, Not):
        child = one.child
        return None if isinstance(child, Not) else _column(child)
    column: tuple[str, ...] | None = getattr(one, "attribute", None)
    if column not in TYPES:
        return None
    if isinstance(one, IsNull | IsNotNull):
        return column
    if type(one) not in _COMPARISONS:
        return None
    values = one.value if isinstance(one, In) else (one.value,)  # type: ignore[attr-defined]
    return column if values and all(_is_comparable(value, TYPES[column]) for value in values) else None


def _is_comparable(value: object, kind: type) -> bool:
    """Return whether a value can be compared here. Null has its own logic, and a time without a zone is ambiguous."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return False
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_met_by_partition(one: Filter, partition: TopicPartition) -> bool:
    if isinstance(one, Not):
        return not _is_met_by_partition(one.child, partition)
    if isinstance(one, IsNull | IsNotNull):
        return isinstance(one, IsNotNull)
    value = partition.topic if one.attribute == TOPIC else partition.partition  # type: ignore[attr-defined]
    return _COMPARISONS[type(one)](value, one.value)  # type: ignore[attr-defined]


def _bounds(one: Filter) -> tuple[Any, Any] | None:
    """Return lower and upper bound of the values that the filter accepts; None if it has no bounds."""
    match one:
        case EqualTo() | EqualNullSafe():
            return one.value, one.value
        case GreaterThan() | GreaterThanOrEqual():
            return one.value, None
        case LessThan() | LessThanOrEqual():
            return None, one.value
        case In():
            return min(one.value), max(one.value)
        case _:
            return None


def _milliseconds(time: datetime) -> int:
    """Return milliseconds, rounded down; -1 for times before 1970, which ListOffsets does not accept."""
    return max(-1, (time - _EPOCH) // timedelta(milliseconds=1))
