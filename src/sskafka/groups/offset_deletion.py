"""The deletion of many offsets, those of a deleted group or of deleted topics, some in each decision.

    begin: the offsets are hidden ──► tombstones of some offsets ──► ... ──► finish: the requester is answered

The tombstones of 10,000 offsets would take 50 ms in one decision. A deletion covers the offsets that were written
before it began, which their `order` tells. Nobody can fetch these offsets any more, so the deletion looks as if it
happened at once. The group itself is deleted when the deletion of its offsets begins. What can happen until it ends:

    an offset is committed          its order is higher: it is visible and stays, also in a partition that is covered,
                                    in a topic that was created again, and in a group of the same name
    a transaction commits offsets   they keep the order in which they were written: covered ones are deleted
    a transaction writes an offset  no tombstone is written there until the transaction has ended, because it would
    in a covered partition          delete the new offset, too. The deletion is not finished before
    a member joins the group        it joins a new group, which has none of the offsets
    the group is deleted again      GROUP_ID_NOT_FOUND. A new group of the same name has a deletion of its own
    a topic is deleted again        it has a further deletion
    the decision is refused,        the requester gets the error. The offsets stay hidden, and a timer asks for the
    because too few replicas are    deletion again until it is finished
    in sync
    the broker stops, or an append  the offsets without tombstones are there again, those of a deleted group in a group
    fails, or another broker leads  without members. The requester gets an error and may delete the group again. For
                                    topics that do not exist, every coordinator begins a deletion when it has loaded

Only hiding is soft state. Each decision has tombstones that are valid without those that follow.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sskafka.groups.log_records import GroupResult, OffsetRecord
from sskafka.groups.offsets import OffsetStore
from sskafka.model.coordination import Completion, CoordinatorResult, Respond, Timers
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition

OFFSETS_PER_DECISION = 200
"""Offsets that a decision looks at. To delete all of them takes 1 to 2 ms."""
AT_ONCE_MAX = 500
"""Offsets of groups that are looked at and deleted without a deletion in the background. That takes up to 3 ms."""
ASK_AGAIN_MS = 1_000
_TIMER = "offset deletions"


class OffsetDeletion:
    """Offsets of the groups, in all topics or in some, that were written up to `order`."""

    def __init__(
        self, offsets: OffsetStore, groups: Iterable[str], topics: frozenset[str] | None, completion: Completion | None
    ) -> None:
        self.offsets = offsets
        self.groups = tuple(groups)
        self.topics = topics
        """None: all topics."""
        self.order = offsets.order
        self.completion = completion
        """The requester, which is answered when the deletion is finished."""
        self.is_blocked = False
        """Whether an open transaction has written a newer offset in a covered partition. A tombstone would delete that
        one, too, so it has to wait for the end of the transaction."""

    def parts(self) -> Iterator[tuple[str, list[TopicPartition]]]:
        """Yield groups and partitions for the decisions. Between two of them, the offsets may change."""
        self.is_blocked = False
        for group_id in self.groups:
            partitions = list(self.offsets.partitions_of(group_id))
            for start in range(0, len(partitions), OFFSETS_PER_DECISION):
                yield group_id, partitions[start : start + OFFSETS_PER_DECISION]

    def tombstones(self, group_id: str, partitions: Iterable[TopicPartition]) -> GroupResult:
        """Delete those of the offsets that this deletion covers."""
        records = [
            OffsetRecord(group_id, partition)
            for partition in partitions
            if (self.topics is None or partition.topic in self.topics) and self._is_due(group_id, partition)
        ]
        return CoordinatorResult(records, ErrorCode.NONE, is_divisible=True)

    def _is_due(self, group_id: str, partition: TopicPartition) -> bool:
        committed = self.offsets.committed(group_id).get(partition)
        if committed is not None and committed.order > self.order:
            return False
        pending = self.offsets.pending_orders(group_id, partition)
        if not pending or max(pending) <= self.order:
            return committed is not None or bool(pending)
        self.is_blocked |= committed is not None or min(pending) <= self.order
        return False

    def refuse(self, error: ErrorCode) -> None:
        """Pass an error to the requester. The deletion goes on without it."""
        completion, self.completion = self.completion, None
        if completion is not None:
            completion.refuse(error)


class DeleteOffsets(NamedTuple):
    """An effect: make the decisions of a deletion in the background."""

    deletion: OffsetDeletion


class OffsetDeletions:
    """The deletions of a shard that are not finished."""

    def __init__(self, offsets: OffsetStore, timers: Timers) -> None:
        self._offsets = offsets
        self._timers = timers
        self._unfinished: list[OffsetDeletion] = []

    def begin_of_group(self, group_id: str, completion: Completion | None) -> DeleteOffsets:
        self._offsets.hide_group(group_id)
        return self._begin(OffsetDeletion(self._offsets, [group_id], None, completion))

    def begin_of_topics(self, topics: frozenset[str]) -> DeleteOffsets:
        self._offsets.hide_topics(topics)
        return self._begin(OffsetDeletion(self._offsets, self._offsets.groups_of(topics), topics, None))

    def _begin(self, deletion: OffsetDeletion) -> DeleteOffsets:
        self._unfinished.append(deletion)
        self._timers.schedule(_TIMER, ASK_AGAIN_MS, self._ask_again)
        return DeleteOffsets(deletion)

    def _ask_again(self, now_ms: int) -> GroupResult:
        if self._unfinished:
            self._timers.schedule(_TIMER, ASK_AGAIN_MS, self._ask_again)
        return CoordinatorResult(effects=[DeleteOffsets(deletion) for deletion in self._unfinished])

    def finish(self, deletion: OffsetDeletion) -> GroupResult:
        """Answer the requester, after every part was decided. A deletion that is blocked goes on later instead.

        A deletion may be finished twice: a timer asked for it again while its last tombstones were not committed."""
        if deletion.is_blocked or deletion not in self._unfinished:
            return CoordinatorResult()
        self._unfinished.remove(deletion)
        if deletion.topics is None:
            self._offsets.show_group(deletion.groups[0], deletion.order)
        else:
            self._offsets.show_topics(deletion.topics, deletion.order)
        completion = deletion.completion
        return CoordinatorResult(effects=[] if completion is None else [Respond(completion, ErrorCode.NONE)])

    def waiting(self) -> Iterator[Completion]:
        return (deletion.completion for deletion in self._unfinished if deletion.completion is not None)
