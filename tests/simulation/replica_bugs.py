"""Bugs that brokers of this kind have had, each as a patch: the simulation is worth something if it finds them."""

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from sskafka.model.ids import EpochEnd
from sskafka.partition.in_sync_replicas import InSyncReplicas, IsrChange
from sskafka.partition.leader_state import LeaderState
from sskafka.replication import fetcher, readable_partition
from sskafka.replication.isr_changes import IsrChanges
from sskafka.replication.partition import FollowerPosition, Partition
from sskafka.replication.readable_partition import PartitionRead
from sskafka.servers.kafka.handlers.produce import ProduceHandler
from sskafka.storage import log
from sskafka.storage.log import AppendInfo

Bug = Callable[[pytest.MonkeyPatch], None]


def high_watermark_at_the_append(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaderState, "high_watermark_candidate", lambda self, own, *_: own)


def high_watermark_over_the_shrunk_set(patch: pytest.MonkeyPatch) -> None:
    def propose(self: InSyncReplicas, change: IsrChange) -> None:
        self.pending = change
        self.maximal = frozenset(change.isr)

    patch.setattr(InSyncReplicas, "propose", propose)


def position_from_what_was_sent(patch: pytest.MonkeyPatch) -> None:
    read = Partition.read_as_follower

    def read_and_believe(self: Partition, position: FollowerPosition, *rest: Any) -> PartitionRead:
        found = read(self, position, *rest)
        if found.size_bytes and self.leader is not None:
            sent = copy(position)
            sent.fetch_offset = self.log.log_end_offset
            self._note_follower(sent)
        return found

    patch.setattr(Partition, "read_as_follower", read_and_believe)


def high_watermark_below_min_insync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaderState, "has_enough_in_sync", lambda self, min_insync: True)


def truncation_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    follow = Partition._take_role

    def cut_and_follow(self: Partition, leadership: Any) -> None:
        if not leadership.is_led_by(self._host.broker_id):
            self.truncate_to(self.high_watermark)
        follow(self, leadership)

    patch.setattr(Partition, "_take_role", cut_and_follow)
    patch.setattr(readable_partition, "diverging_epoch", lambda *_: None)


def no_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(readable_partition, "diverging_epoch", lambda *_: None)


def truncation_to_the_leaders_end_of_a_later_epoch(patch: pytest.MonkeyPatch) -> None:
    """As before KIP-279: the follower's own idea of the epoch is not asked."""

    def truncate(self: Partition, diverging: EpochEnd, _: int) -> None:
        self.truncate_to(min(diverging.end_offset, self.log.log_end_offset))

    patch.setattr(fetcher, "truncate_by", truncate)


def joining_before_the_epoch_start(patch: pytest.MonkeyPatch) -> None:
    plan = LeaderState.plan_expand

    def careless(self: LeaderState, *arguments: Any) -> IsrChange | None:
        start, self.epoch_start_offset = self.epoch_start_offset, 0
        try:
            return plan(self, *arguments)
        finally:
            self.epoch_start_offset = start

    patch.setattr(LeaderState, "plan_expand", careless)


def change_forgotten_while_the_controller_is_away(patch: pytest.MonkeyPatch) -> None:
    answered = IsrChanges._answered

    def forget(self: IsrChanges, items: Any, outcome: Any) -> float:
        pause_s = answered(self, items, outcome)
        if isinstance(outcome, Exception) or outcome.error_code:
            self.clear()
        return pause_s

    patch.setattr(IsrChanges, "_answered", forget)


def duplicate_answered_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """A batch that is repeated at a leader which alone has it is no safer for that."""
    append = ProduceHandler._append

    def believe(self: ProduceHandler, *arguments: Any) -> tuple[Partition, AppendInfo]:
        found, info = append(self, *arguments)
        if info.duplicate:
            found.log.advance_high_watermark(info.last_offset + 1)
        return found, info

    patch.setattr(ProduceHandler, "_append", believe)


def producers_survive_truncation(patch: pytest.MonkeyPatch) -> None:
    """Batches that were cut off count as written: repeated at this replica once it leads, they are lost."""
    patch.setattr(log, "rebuild_producers", lambda *_, **__: None)


def producers_forgotten_at_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log, "rebuild_producers", lambda segments, snapshots, state, *_, **__: state.clear())


BUGS_OF_IDEMPOTENCE: tuple[Bug, ...] = (
    duplicate_answered_before_it_is_committed,
    producers_survive_truncation,
    producers_forgotten_at_truncation,
)
"""Found where producers repeat their batches."""

BUGS: tuple[Bug, ...] = (
    high_watermark_at_the_append,
    high_watermark_over_the_shrunk_set,
    position_from_what_was_sent,
    high_watermark_below_min_insync,
    truncation_to_the_high_watermark,
    no_truncation,
    truncation_to_the_leaders_end_of_a_later_epoch,
    joining_before_the_epoch_start,
    change_forgotten_while_the_controller_is_away,
)
