"""Committed offsets of groups, and pending ones of open transactions, which take effect when the transaction commits.

    commit       ──► committed
    commit in a transaction ──► pending (by producer id) ──► marker: committed, or dropped

The order in the log decides. An offset that was committed outside of the transaction after a pending one is not
overwritten when the transaction commits, and a pending offset that was deleted does not come back.

Offsets that are being deleted (offset_deletion.py) are hidden: those of a group or topic that were written up to some
order. `visible` and `visible_offset` leave them out.
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
    __slots__ = ("_by_topic", "_committed", "_hidden_groups", "_hidden_topics", "_pending", "_producers", "order")

    def __init__(self) -> None:
        self._committed: dict[str, Offsets] = {}
        self._pending: dict[int, dict[str, Offsets]] = {}
        self._producers: dict[str, dict[TopicPartition, set[int]]] = {}
        """By group and partition: the producers with a pending offset. Groups are looked at without a search, too."""
        self._by_topic: dict[str, dict[str, int]] = {}
        """By topic and group: the number of offsets, committed and pending. Topics are deleted without a search."""
        self._hidden_groups: dict[str, int] = {}
        self._hidden_topics: dict[str, int] = {}
        """By group or topic: the order up to which its offsets are hidden."""
        self.order = 0
        """The order of the offset or tombstone that was written last."""

    # -- replay

    def replay(
        self, group_id: str, partition: TopicPartition, offset: CommittedOffset | None, producer_id: int
    ) -> None:
        """Replay an offset, or its tombstone (None). A producer id of -1 means: no transaction."""
        self.order += 1
        if offset is None:
            self._remove(group_id, partition)
            return
        offsets = self._committed
        if producer_id >= 0:
            offsets = self._pending.setdefault(producer_id, {})
            self._producers.setdefault(group_id, {}).setdefault(partition, set()).add(producer_id)
        of_group = offsets.setdefault(group_id, {})
        if partition not in of_group:
            self._count(partition.topic, group_id, 1)
        of_group[partition] = offset._replace(order=self.order)

    def _remove(self, group_id: str, partition: TopicPartition) -> None:
        pending = [self._pending[producer_id] for producer_id in self._producers_of(group_id, partition)]
        if pending:
            self._drop_producers(group_id, partition)
        for offsets in (self._committed, *pending):
            known = offsets.get(group_id)
            if known is not None:
                if known.pop(partition, None) is not None:
                    self._count(partition.topic, group_id, -1)
                if not known:
                    del offsets[group_id]

    def _producers_of(self, group_id: str, partition: TopicPartition) -> AbstractSet[int]:
        return self._producers.get(group_id, {}).get(partition, frozenset())

    def _drop_producers(self, group_id: str, partition: TopicPartition) -> None:
        partitions = self._producers[group_id]
        del partitions[partition]
        if not partitions:
            del self._producers[group_id]

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
        """Return the groups that have visible offsets because the transaction has committed."""
        pending = self._pending.pop(producer_id, {})
        for group_id, offsets in pending.items():
            committed = self._committed.setdefault(group_id, {}) if is_committed else None
            for partition, offset in offsets.items():
                producers = self._producers[group_id][partition]
                producers.remove(producer_id)
                if not producers:
                    self._drop_producers(group_id, partition)
                known = None if committed is None else committed.get(partition)
                if committed is None or known is not None:
                    self._count(partition.topic, group_id, -1)
                if committed is not None and (known is None or known.order < offset.order):
                    committed[partition] = offset
        if not is_committed:
            return []
        return [group_id for group_id, offsets in pending.items() if self._has_visible(group_id, offsets)]

    # -- hidden offsets

    def hide_group(self, group_id: str) -> None:
        """Hide the offsets that the group has now."""
        self._hidden_groups[group_id] = self.order

    def hide_topics(self, topics: Iterable[str]) -> None:
        """Hide the offsets that groups have of the topics now."""
        self._hidden_topics.update(dict.fromkeys(topics, self.order))

    def show_group(self, group_id: str, order: int) -> None:
        """Forget that offsets up to `order` are hidden, unless later ones are hidden, too."""
        _forget(self._hidden_groups, group_id, order)

    def show_topics(self, topics: Iterable[str], order: int) -> None:
        for topic in topics:
            _forget(self._hidden_topics, topic, order)

    def _is_hidden(self, group_id: str, topic: str, offset: CommittedOffset) -> bool:
        return offset.order <= max(self._hidden_groups.get(group_id, 0), self._hidden_topics.get(topic, 0))

    def _has_visible(self, group_id: str, offsets: Offsets) -> bool:
        return any(not self._is_hidden(group_id, partition.topic, offset) for partition, offset in offsets.items())

    # -- questions

    def committed(self, group_id: str) -> Offsets:
        """Return the committed offsets, also hidden ones. The caller must not change them."""
        return self._committed.get(group_id, {})

    def visible(self, group_id: str) -> Offsets:
        """Return a copy of the committed offsets without hidden ones."""
        offsets = self.committed(group_id)
        if group_id not in self._hidden_groups and not self._hidden_topics:
            return offsets.copy()
        return {
            partition: offset
            for partition, offset in offsets.items()
            if not self._is_hidden(group_id, partition.topic, offset)
        }

    def visible_offset(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        offset = self.committed(group_id).get(partition)
        return None if offset is None or self._is_hidden(group_id, partition.topic, offset) else offset

    def pending_orders(self, group_id: str, partition: TopicPartition) -> list[int]:
        """Return the orders of the offsets that open transactions have written."""
        producers = self._producers_of(group_id, partition)
        return [self._pending[producer_id][group_id][partition].order for producer_id in producers]

    def count_in(self, group_ids: Iterable[str]) -> int:
        """Return the number of offsets of the groups, committed and pending."""
        return sum(
            len(self.committed(group_id)) + sum(map(len, self._producers.get(group_id, {}).values()))
            for group_id in group_ids
        )

    def groups_of(self, topics: Iterable[str]) -> set[str]:
        """Return the groups that have offsets of one of the topics, committed or pending."""
        return {group_id for topic in topics for group_id in self._by_topic.get(topic, ())}

    def groups(self) -> AbstractSet[str]:
        """Return the groups that have committed offsets."""
        return self._committed.keys()

    def topics(self) -> AbstractSet[str]:
        return self._by_topic.keys()

    def pending_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions whose offset an open transaction may change."""
        return set(self._producers.get(group_id, ()))

    def partitions_of(self, group_id: str) -> set[TopicPartition]:
        return {*self.committed(group_id), *self.pending_partitions(group_id)}


def _forget(hidden: dict[str, int], name: str, order: int) -> None:
    if hidden.get(name) == order:
        del hidden[name]
