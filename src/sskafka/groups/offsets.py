"""Committed offsets of groups, and pending ones of open transactions, which take effect when the transaction commits.

    commit       ──► committed
    commit in a transaction ──► pending (by producer id) ──► marker: committed, or dropped

The order in the log decides. An offset that was committed outside of the transaction after a pending one is not
overwritten when the transaction commits, and a pending offset that was deleted does not come back.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from sskafka.model.ids import TopicPartition

NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Set by old clients that state how long the offset is to be kept."""
    order: int = 0
    """Increases with every offset that is written."""


Offsets = dict[TopicPartition, CommittedOffset]


class OffsetStore:
    __slots__ = ("_by_topic", "_committed", "_order", "_pending")

    def __init__(self) -> None:
        self._committed: dict[str, Offsets] = {}
        self._pending: dict[int, dict[str, Offsets]] = {}
        self._by_topic: dict[str, dict[str, int]] = {}
        """By topic and group: the number of offsets, committed and pending. Topics are deleted without a search."""
        self._order = 0

    # -- replay

    def replay(
        self, group_id: str, partition: TopicPartition, offset: CommittedOffset | None, producer_id: int
    ) -> None:
        """Replay an offset, or its tombstone (None). A producer id of -1 means: no transaction."""
        self._order += 1
        if offset is not None:
            offsets = self._committed if producer_id < 0 else self._pending.setdefault(producer_id, {})
            of_group = offsets.setdefault(group_id, {})
            if partition not in of_group:
                self._count(partition.topic, group_id, 1)
            of_group[partition] = offset._replace(order=self._order)
            return
        for offsets in (self._committed, *self._pending.values()):
            known = offsets.get(group_id)
            if known is not None:
                if known.pop(partition, None) is not None:
                    self._count(partition.topic, group_id, -1)
                if not known:
                    del offsets[group_id]

    def _count(self, topic: str, group_id: str, more: int) -> None:
        groups = self._by_topic.get(topic)
        if groups is None:
            groups = self._by_topic[topic] = {}
        count = groups.get(group_id, 0) + more
        if count:
            groups[group_id] = count
            return
        del groups[group_id]
        if not groups:
            del self._by_topic[topic]

    def end_transaction(self, producer_id: int, is_committed: bool) -> list[str]:
        """Return the groups whose offsets the transaction has committed."""
        pending = self._pending.pop(producer_id, {})
        for group_id, offsets in pending.items():
            committed = self._committed.setdefault(group_id, {}) if is_committed else None
            for partition, offset in offsets.items():
                known = None if committed is None else committed.get(partition)
                if committed is None or known is not None:
                    self._count(partition.topic, group_id, -1)
                if committed is not None and (known is None or known.order < offset.order):
                    committed[partition] = offset
        return list(pending) if is_committed else []

    # -- questions

    def committed(self, group_id: str) -> Offsets:
        """Return the committed offsets. The caller must not change them."""
        return self._committed.get(group_id, {})

    def groups_of(self, topics: Iterable[str]) -> set[str]:
        """Return the groups that have offsets of one of the topics, committed or pending."""
        return {group_id for topic in topics for group_id in self._by_topic.get(topic, ())}

    def topics(self) -> AbstractSet[str]:
        return self._by_topic.keys()

    def pending_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions whose offset an open transaction may change."""
        return {partition for offsets in self._pending.values() for partition in offsets.get(group_id, ())}

    def partitions_of(self, group_id: str) -> set[TopicPartition]:
        return {*self.committed(group_id), *self.pending_partitions(group_id)}
