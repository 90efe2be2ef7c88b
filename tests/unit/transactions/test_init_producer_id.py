"""InitProducerId: epochs, fencing, recovery (KIP-360), and the exhaustion of a producer id's epochs."""

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions.init_producer_id import InitProducerId, decide, refused
from sskafka.transactions.metadata import EPOCH_MAX, LAST_USABLE_EPOCH, TransactionMetadata, TransactionState

S = TransactionState
NOW = 1_000


def known(state: S = S.EMPTY, epoch: int = 3, **fields: object) -> TransactionMetadata:
    return TransactionMetadata("pay", 7, epoch, 60_000, state, **fields)  # type: ignore[arg-type]


def asked(producer_id: int = -1, epoch: int = -1, timeout_ms: int = 30_000) -> InitProducerId:
    return InitProducerId("pay", timeout_ms, ProducerIdAndEpoch(producer_id, epoch))


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (asked(), ErrorCode.NONE),
        (asked(timeout_ms=0), ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (asked(timeout_ms=-1), ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (asked(timeout_ms=60_000), ErrorCode.NONE),
        (asked(timeout_ms=60_001), ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (asked(7), ErrorCode.INVALID_REQUEST),
        (asked(epoch=3), ErrorCode.INVALID_REQUEST),
        (asked()._replace(transactional_id=""), ErrorCode.INVALID_REQUEST),
    ],
)
def test_questions_that_make_no_sense(question: InitProducerId, error: ErrorCode) -> None:
    assert refused(question, 60_000) is error


def test_a_new_id_needs_a_producer_id_and_begins_with_epoch_0() -> None:
    assert decide(None, asked(), None, NOW).needs_producer_id
    verdict = decide(None, asked(), 9, NOW)
    assert verdict.identity == (9, 0)
    assert verdict.changed is not None
    assert (verdict.changed.timeout_ms, verdict.changed.last_update_ms) == (30_000, NOW)


def test_an_expired_id_lets_its_producer_begin_anew() -> None:
    assert decide(None, asked(7, 3), 9, NOW).identity == (9, 0)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_a_newer_producer_gets_the_next_epoch(state: S) -> None:
    verdict = decide(known(state, partitions=frozenset({TopicPartition("a", 0)})), asked(), None, NOW)
    assert verdict.identity == (7, 4)
    assert verdict.changed is not None
    assert (verdict.changed.state, verdict.changed.partitions, verdict.changed.timeout_ms) == (
        S.EMPTY,
        frozenset(),
        30_000,
    )


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_nobody_is_initialized_while_markers_are_written(state: S) -> None:
    assert decide(known(state), asked(), 9, NOW) == (ErrorCode.CONCURRENT_TRANSACTIONS, None, (-1, -1), False)


@pytest.mark.parametrize(("version", "epoch"), [(0, 4), (2, 5)])
def test_an_open_transaction_is_aborted_under_a_higher_epoch(version: int, epoch: int) -> None:
    verdict = decide(known(S.ONGOING, client_version=version), asked(), None, NOW)
    assert verdict.error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert verdict.changed is not None
    assert (verdict.changed.state, verdict.changed.producer_epoch) == (S.PREPARE_ABORT, epoch)


def test_a_producer_recovers_with_its_own_identity_and_may_ask_twice() -> None:
    first = decide(known(), asked(7, 3), None, NOW)
    assert first.identity == (7, 4)
    again = decide(first.changed, asked(7, 3), None, NOW)
    assert again.identity == (7, 4)


def test_a_fenced_producer_cannot_recover() -> None:
    after_newer = decide(known(), asked(), None, NOW).changed
    assert decide(after_newer, asked(7, 3), None, NOW).error is ErrorCode.PRODUCER_FENCED
    assert decide(known(S.ONGOING, epoch=4), asked(7, 3), None, NOW) == (
        ErrorCode.PRODUCER_FENCED,
        None,
        (-1, -1),
        False,
    )
    assert decide(known(), asked(6, 3), None, NOW).error is ErrorCode.PRODUCER_FENCED


def test_used_up_epochs_bring_a_new_producer_id() -> None:
    last = known(epoch=LAST_USABLE_EPOCH)
    assert decide(last, asked(), None, NOW).needs_producer_id
    verdict = decide(last, asked(), 9, NOW)
    assert verdict.identity == (9, 0)
    assert verdict.changed is not None
    assert verdict.changed.previous_producer_id == 7


def test_who_lost_the_answer_that_told_the_new_id_may_ask_again() -> None:
    rotated = decide(known(epoch=LAST_USABLE_EPOCH), asked(7, LAST_USABLE_EPOCH), 9, NOW)
    assert rotated.identity == (9, 0)
    assert decide(rotated.changed, asked(7, LAST_USABLE_EPOCH), None, NOW).identity == (9, 0)


def test_a_transaction_fenced_in_the_last_epoch_can_be_followed_by_another() -> None:
    aborted = known(S.COMPLETE_ABORT, epoch=EPOCH_MAX)
    assert decide(aborted, asked(), 9, NOW).identity == (9, 0)
