"""What coordinators of consumer groups compute in the background, in slices of the event loop.

    effect ComputeTarget ──► snapshot of the group ──► target assignment ──► write: install it
    effect ResolvePatterns ──► topics of the patterns ──► write: records, and a new epoch of the group
    effect DeleteOffsets ──► write: tombstones of some offsets ──► ... ──► write: answer the requester

Computations of all groups of a broker run one after the other (runtime/sliced_work.py). One ends early if its group is
not the one that it began with: it was deleted, became a classic group, or this broker stopped coordinating it or loaded
it anew. A deletion of offsets also ends if nothing can be written; its shard asks for it again.
"""

from collections.abc import Callable
from typing import TypeVar

from sskafka.coordination.completions import NO_REQUESTER
from sskafka.coordination.runtime import CoordinatorRuntime
from sskafka.groups.offset_deletion import DeleteOffsets, OffsetDeletion
from sskafka.groups.offsets import OffsetStore
from sskafka.groups.pattern_resolution import ResolvePatterns
from sskafka.groups.shard import GroupCoordinatorShard
from sskafka.groups.target_assignment import ComputeTarget, compute
from sskafka.model.computation import Computation
from sskafka.model.coordination import CallbackCompletion
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.runtime.sliced_work import SlicedWork

T = TypeVar("T")


class GroupComputations:
    def __init__(self, runtime: CoordinatorRuntime[GroupCoordinatorShard], work: SlicedWork) -> None:
        self._runtime = runtime
        self._work = work

    def perform(self, effect: object) -> None:
        """Begin a computation that a decision has asked for, unless it is under way."""
        match effect:
            case ComputeTarget():
                self._work.put((ComputeTarget, effect.group_id), lambda: self._target(effect.group_id))
            case ResolvePatterns():
                self._work.put((ResolvePatterns, effect.group_id), lambda: self._patterns(effect))
            case DeleteOffsets():
                self._work.put((DeleteOffsets, effect.deletion), lambda: self._deletion(effect.deletion))
            case _:
                raise TypeError(f"{effect} is no effect of a group")

    def stop(self) -> None:
        self._work.stop()

    def _target(self, group_id: str) -> Computation[None]:
        shard = self._runtime.active_shard(group_id)
        snapshot = None if shard is None else shard.consumer.snapshot(group_id)
        if shard is None or snapshot is None:
            return
        target = yield from _while_true(self._is_same(shard, group_id), compute(snapshot))
        if target is not None:
            self._runtime.write(group_id, lambda shard, now_ms: shard.consumer.install(target, now_ms), NO_REQUESTER)

    def _patterns(self, wanted: ResolvePatterns) -> Computation[None]:
        shard = self._runtime.active_shard(wanted.group_id)
        if shard is None:
            return
        is_same = self._is_same(shard, wanted.group_id)
        allowed = yield from _while_true(is_same, shard.consumer.resolve_patterns(wanted))
        if allowed is not None:
            self._runtime.write(
                wanted.group_id,
                lambda shard, now_ms: shard.consumer.patterns_resolved(wanted, allowed, now_ms),
                NO_REQUESTER,
            )

    def _deletion(self, deletion: OffsetDeletion) -> Computation[None]:
        key = deletion.groups[0]  # all groups are in the same shard
        for group_id, partitions in deletion.parts():
            if not self._is_active(key, deletion.offsets) or not self._is_deleted(deletion, group_id, partitions):
                return
            yield
        if self._is_active(key, deletion.offsets):
            self._runtime.write(key, lambda shard, now_ms: shard.deletions.finish(deletion), NO_REQUESTER)

    def _is_deleted(self, deletion: OffsetDeletion, group_id: str, partitions: list[TopicPartition]) -> bool:
        """Write tombstones. Return False, and refuse the requester, if nothing can be written."""
        refusals: list[ErrorCode] = []
        completion = CallbackCompletion(lambda _: None, lambda error, _: refusals.append(error))
        self._runtime.write(group_id, lambda shard, now_ms: deletion.tombstones(group_id, partitions), completion)
        for error in refusals:
            deletion.refuse(error)
        return not refusals

    def _is_active(self, key: str, offsets: OffsetStore) -> bool:
        """Return whether these are the offsets of a shard that is still active."""
        shard = self._runtime.active_shard(key)
        return shard is not None and shard.offsets is offsets

    def _is_same(self, shard: GroupCoordinatorShard, group_id: str) -> Callable[[], bool]:
        """Return a function that tells whether the group is still the same, in the same shard."""
        group = shard.groups.get(group_id)
        return lambda: self._runtime.active_shard(group_id) is shard and shard.groups.get(group_id) is group


def _while_true(condition: Callable[[], bool], steps: Computation[T]) -> Computation[T | None]:
    """Return the result, in a step of its own, or None if the condition is no longer true."""
    while condition():
        try:
            next(steps)
        except StopIteration as stop:
            yield
            result: T = stop.value
            return result
        yield
    return None
