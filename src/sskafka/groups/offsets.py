"""Committed offsets of groups, and pending ones of open transactions, which take effect when the transaction commits.

    commit       ──► committed
    commit in a transaction ──► pending (by producer id) ──► marker: committed, or dropped

The order in the log decides. An offset that was committed outside of the transaction after a pending one is not
overwritten when the transaction commits, and a pending offset that was deleted does not come back.
"""

from collections.abc import Iterator
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
    __slots__ = ("_committed", "_order", "_pending")

    def __init__(self) -> None:
        self._committed: dict[str, Offsets] = {}
        self._pending: dict[int, dict[str, Offsets]] = {}
        self._order = 0

    # -- replay

    def replay(
        self, group_id: str, partition: TopicPartition, offset: CommittedOffset | None, producer_id: int
    ) -> None:
        """Replay an offset, or its tombstone (None). A producer id of -1 means: no transaction."""
        self._order += 1
        if offset is not None:
            offsets = self._committed if producer_id < 0 else self._pending.setdefault(producer_id, {})
            offsets.setdefault(group_id, {})[partition] = offset._replace(order=self._order)
            return
        for offsets in (self._committed, *self._pending.values()):
            of_group = offsets.get(group_id)
            if of_group is not None:
                of_group.pop(partition, None)
                if not of_group:
                    del offsets[group_id]

    def end_transaction(self, producer_id: int, is_committed: bool) -> list[str]:
        """Return the groups whose offsets the transaction has committed."""
        pending = self._pending.pop(producer_id, {})
        if not is_committed:
            return []
        for group_id, offsets in pending.items():
            committed = self._committed.setdefault(group_id, {})
            for partition, offset in offsets.items():
                known = committed.get(partition)
                if known is None or known.order < offset.order:
                    committed[partition] = offset
        return list(pending)

    # -- questions

    def committed(self, group_id: str) -> Offsets:
        """Return the committed offsets. The caller must not change them."""
        return self._committed.get(group_id, {})

    def groups(self) -> Iterator[str]:
        return iter({*self._committed, *(group_id for offsets in self._pending.values() for group_id in offsets)})

    def topics(self) -> set[str]:
        return {partition.topic for group_id in self.groups() for partition in self.partitions_of(group_id)}

    def pending_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions whose offset an open transaction may change."""
        return {partition for offsets in self._pending.values() for partition in offsets.get(group_id, ())}

    def partitions_of(self, group_id: str) -> set[TopicPartition]:
        return {*self.committed(group_id), *self.pending_partitions(group_id)}
