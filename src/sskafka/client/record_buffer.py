"""Fetched records that `poll` has not returned yet. Partitions take turns, so that no partition starves.

A partition is fetched again only when its buffered records are used up, which bounds the memory of a consumer.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from sskafka.client.fetched import CompletedFetch, ConsumedRecord
from sskafka.model.ids import TopicPartition


class _Buffered(NamedTuple):
    fetched: CompletedFetch
    records: Iterator[ConsumedRecord]


class RecordBuffer:
    """Calls `on_advance` for a partition whenever records of it were returned or filtered records were skipped."""

    def __init__(self, on_advance: Callable[[CompletedFetch], None]) -> None:
        self._on_advance = on_advance
        self._buffered: dict[TopicPartition, _Buffered] = {}  # in the order of their turns

    def __bool__(self) -> bool:
        return bool(self._buffered)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._buffered

    def put(self, fetched: CompletedFetch) -> None:
        assert fetched.partition not in self._buffered, "a partition is fetched when its records are used up"
        self._buffered[fetched.partition] = _Buffered(fetched, iter(fetched))

    def drop(self, partition: TopicPartition) -> None:
        self._buffered.pop(partition, None)

    def clear(self) -> None:
        self._buffered.clear()

    def take(self, count: int | None = None) -> list[ConsumedRecord]:
        """Return up to `count` records (None: all), a share of each partition; a served partition moves to the end.

        A decoding error is raised only if there are no records to return; the next fetch meets the same error again.
        """
        records: list[ConsumedRecord] = []
        while self._buffered and (count is None or len(records) < count):
            share = None if count is None else max(1, (count - len(records)) // len(self._buffered))
            for partition in list(self._buffered):
                if count is not None and len(records) >= count:
                    break
                self._serve(partition, share, records)
        return records

    def _serve(self, partition: TopicPartition, share: int | None, records: list[ConsumedRecord]) -> None:
        buffered = self._buffered.pop(partition)
        before = len(records)
        try:
            for record in islice(buffered.records, share):
                records.append(record)  # noqa: PERF402  extend() would lose the records before a decoding error
        except Exception:
            if not records:
                raise
            return
        finally:
            self._on_advance(buffered.fetched)
        if share is not None and len(records) - before == share:
            self._buffered[partition] = buffered
