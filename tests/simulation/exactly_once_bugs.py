"""Bugs that transactions have had, here or in other brokers, to be switched on one at a time."""

from collections.abc import Callable

import pytest

from sskafka.coordination import transaction_coordinator
from sskafka.servers.kafka.handlers import transactional_produce
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.transactions.verification import Verification
from sskafka.transactions import shard
from sskafka.transactions.shard import TransactionCoordinatorShard

Bug = Callable[[pytest.MonkeyPatch], None]


def the_marker_of_the_last_transaction_ends_the_next_verification(patch: pytest.MonkeyPatch) -> None:
    """The producer begins its next transaction while the marker is on its way, and is refused: INVALID_TXN_STATE."""
    patch.setattr(Verification, "lapses_with_marker_of", lambda *_: True)
    _believe_answers_that_have_lapsed(patch)


def _believe_answers_that_have_lapsed(patch: pytest.MonkeyPatch) -> None:
    verified = ProducerState.verified

    def believed(self: ProducerState, verification: Verification) -> bool:
        verified(self, verification)
        return True

    patch.setattr(ProducerState, "verified", believed)


def leaders_do_not_verify(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerState, "_check_verified", lambda *_: None)
    patch.setattr(transactional_produce, "_opens_transaction", lambda *_: False)


def markers_are_not_resumed(patch: pytest.MonkeyPatch) -> None:
    """The next coordinator knows what was prepared and does nothing about it."""
    patch.setattr(TransactionCoordinatorShard, "_prepared", lambda _: [])


def a_replaced_coordinator_turns_producers_away(patch: pytest.MonkeyPatch) -> None:
    """It does not know yet that it was replaced, and that the producer has gone on with the next coordinator."""
    patch.setattr(shard, "FINAL_ERRORS", frozenset())
    patch.setattr(transaction_coordinator, "FINAL_ERRORS", frozenset())


BUGS: list[Bug] = [
    the_marker_of_the_last_transaction_ends_the_next_verification,
    leaders_do_not_verify,
    markers_are_not_resumed,
    a_replaced_coordinator_turns_producers_away,
]
