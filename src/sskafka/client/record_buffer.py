"""Records that were fetched and not yet handed out; partitions take turns, so that none of them waits for another.

A partition is fetched again only when its records here are used up, which bounds what a consumer holds in memory.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from sskafka.client.fetched import ConsumedRecord, FetchedPartition
from sskafka.model.ids import TopicPartition


class _Opened(NamedTuple):
    fetched: FetchedPartition
    records: Iterator[ConsumedRecord]


class RecordBuffer:
    """`moved` is told of a partition whenever records of it were handed out, or hidden ones were passed."""

    def __init__(self, moved: Callable[[FetchedPartition], None]) -> None:
        self._moved = moved
        self._opened: dict[TopicPartition, _Opened] = {}  # in the order of their turns

    def __bool__(self) -> bool:
        return bool(self._opened)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._opened

    def put(self, fetched: FetchedPartition) -> None:
        assert fetched.partition not in self._opened, "a partition is fetched when its records are used up"
        self._opened[fetched.partition] = _Opened(fetched, iter(fetched))

    def drop(self, partition: TopicPartition) -> None:
        self._opened.pop(partition, None)

    def clear(self) -> None:
        self._opened.clear()

    def take(self, count: int | None = None) -> list[ConsumedRecord]:
        """Up to `count` records, or all: a share of each partition in turn, the one served last comes last again.

        What cannot be read is raised only when there is nothing else to hand out: it will come again.
        """
        records: list[ConsumedRecord] = []
        while self._opened and (count is None or len(records) < count):
            share = None if count is None else max(1, (count - len(records)) // len(self._opened))
            for partition in list(self._opened):
                if count is not None and len(records) >= count:
                    break
                self._serve(partition, share, records)
        return records

    def _serve(self, partition: TopicPartition, share: int | None, records: list[ConsumedRecord]) -> None:
        opened = self._opened.pop(partition)
        before = len(records)
        try:
            for record in islice(opened.records, share):
                records.append(record)  # noqa: PERF402  those before a broken one count
        except Exception:
            if not records:
                raise
            return
        finally:
            self._moved(opened.fetched)
        if share is not None and len(records) - before == share:
            self._opened[partition] = opened
