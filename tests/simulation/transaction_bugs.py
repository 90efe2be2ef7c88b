"""Bugs that transactions of other brokers have had, to be switched on one at a time."""

from collections.abc import Callable
from typing import Any

import pytest
from transaction_parts import Coordinator

from sskafka.model.coordination import CoordinatorResult
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.transactions.verification import Verifications
from sskafka.transactions import end_txn, shard
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.metadata import TransactionMetadata, TransactionResult
from sskafka.transactions.shard import SendMarkers, TransactionCoordinatorShard

Bug = Callable[[pytest.MonkeyPatch], None]


def the_end_leaves_a_verification_standing(patch: pytest.MonkeyPatch) -> None:
    """The coordinator said yes, then the transaction ended: the batch opens one that nobody ends."""
    patch.setattr(Verifications, "marker_written", lambda *_: None)


def markers_are_not_resumed(patch: pytest.MonkeyPatch) -> None:
    """The next coordinator knows what was prepared and does nothing about it."""
    patch.setattr(TransactionCoordinatorShard, "_prepared", lambda _: [])


def markers_go_out_before_the_outcome_is_committed(patch: pytest.MonkeyPatch) -> None:
    take = Coordinator.take

    def early(
        coordinator: Coordinator, shard: TransactionCoordinatorShard, decision: CoordinatorResult, *rest: Any
    ) -> None:
        markers = [effect for effect in decision.effects if isinstance(effect, SendMarkers)]
        take(coordinator, shard, decision, *rest)
        for effect in markers:
            coordinator.perform(effect)

    patch.setattr(Coordinator, "take", early)


def ends_keep_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """The second version, carried out as the first: a delayed end ends the next transaction."""
    patch.setattr(end_txn, "BUMPING_VERSION", 99)


def the_end_of_an_old_epoch_is_accepted(patch: pytest.MonkeyPatch) -> None:
    decide = end_txn.decide

    def anybody(
        known: TransactionMetadata | None, asked: EndTxn, spare_id: int | None, now_ms: int
    ) -> TransactionResult:
        if known is not None:
            asked = asked._replace(producer=known.identity)
        return decide(known, asked, spare_id, now_ms)

    patch.setattr(end_txn, "decide", anybody)


def a_late_marker_ends_the_next_transaction(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerState, "check_bumped_marker", lambda *_: None)


def nothing_times_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shard, "has_timed_out", lambda *_: False)


BUGS: list[Bug] = [
    the_end_leaves_a_verification_standing,
    markers_are_not_resumed,
    markers_go_out_before_the_outcome_is_committed,
    ends_keep_the_epoch,
    the_end_of_an_old_epoch_is_accepted,
    a_late_marker_ends_the_next_transaction,
    nothing_times_out,
]
