"""Two-phase commits (KIP-939): transactions without a timeout, and transactions that a new producer takes over."""

from typing import Any

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions import add_partitions, end_txn
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId, decide, refused
from sskafka.transactions.log_records import decode_value, encode_value
from sskafka.transactions.metadata import (
    LAST_USABLE_EPOCH,
    NO_TIMEOUT_MS,
    TransactionMetadata,
    TransactionResult,
    TransactionState,
    completed,
    fenced,
    has_timed_out,
)
from sskafka.transactions.shard import TransactionCoordinatorShard, TransactionLimits

S = TransactionState
NOW = 1_000
A = TopicPartition("a", 0)
TWO_PHASE = InitProducerId("pay", 5, two_phase=True)
KEEPING = InitProducerId("pay", 5, two_phase=True, keep_prepared=True)


def ongoing(epoch: int = 3, version: int = 0, **fields: Any) -> TransactionMetadata:
    return TransactionMetadata("pay", 7, epoch, NO_TIMEOUT_MS, S.ONGOING, frozenset({A}), 100, 100, version, **fields)


def taken_over(known: TransactionMetadata) -> TransactionMetadata:
    changed = decide(known, KEEPING, None, NOW).changed
    assert changed is not None
    return changed


def test_a_two_phase_producer_has_no_timeout_whatever_it_asked_for() -> None:
    for timeout_ms in (-1, 0, 5, NO_TIMEOUT_MS):
        assert refused(TWO_PHASE._replace(timeout_ms=timeout_ms), 60_000) is ErrorCode.NONE
    created = decide(None, TWO_PHASE, 9, NOW).changed
    assert created is not None
    assert created.timeout_ms == NO_TIMEOUT_MS
    again = decide(created, TWO_PHASE, None, NOW).changed
    assert again is not None
    assert again.timeout_ms == NO_TIMEOUT_MS


def test_a_two_phase_transaction_does_not_time_out() -> None:
    assert not has_timed_out(ongoing(), 2**62)
    assert has_timed_out(ongoing()._replace(timeout_ms=NO_TIMEOUT_MS - 1), 2**62)


def test_a_transaction_that_is_not_kept_is_aborted() -> None:
    verdict = decide(ongoing(), TWO_PHASE, None, NOW)
    assert verdict.error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert verdict.changed is not None
    assert verdict.changed.state is S.PREPARE_ABORT


def test_a_kept_transaction_stays_open_and_says_who_wrote_it_however_often_it_is_taken_over() -> None:
    first = decide(ongoing(), KEEPING, None, NOW)
    assert first.error is ErrorCode.NONE
    assert first.identity == (7, 4)
    assert first.changed is not None
    second = decide(first.changed, KEEPING, None, NOW)
    assert second.identity == (7, 5)
    assert second.changed is not None
    assert (second.changed.state, second.changed.identity, second.changed.partitions) == (S.ONGOING, (7, 3), {A})


def test_without_an_open_transaction_nothing_is_kept() -> None:
    verdict = decide(TransactionMetadata("pay", 7, 3, 60_000, S.COMPLETE_COMMIT), KEEPING, None, NOW)
    assert verdict.identity == (7, 4)
    assert verdict.changed is not None
    assert verdict.changed.state is S.EMPTY


@pytest.mark.parametrize(("version", "epoch"), [(0, 4), (2, 5)])
@pytest.mark.parametrize("commit", [True, False])
def test_the_new_producer_ends_it_and_the_old_one_cannot(version: int, epoch: int, commit: bool) -> None:
    known = taken_over(ongoing(version=version))
    old, new = ProducerIdAndEpoch(7, 3), ProducerIdAndEpoch(7, 4)
    assert end_txn.decide(known, EndTxn(old, commit, version), None, NOW).error is ErrorCode.PRODUCER_FENCED
    ended = end_txn.decide(known, EndTxn(new, commit, version), None, NOW)
    assert ended.identity == (7, epoch)
    assert ended.changed is not None
    assert ended.changed.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
    done = completed(ended.changed, NOW)
    assert end_txn.decide(done, EndTxn(new, commit, version), None, NOW).error is ErrorCode.NONE  # asked again


def test_nobody_adds_to_a_transaction_that_was_taken_over() -> None:
    known = taken_over(ongoing())
    for producer, error in (
        (ProducerIdAndEpoch(7, 3), ErrorCode.PRODUCER_FENCED),
        (ProducerIdAndEpoch(7, 4), ErrorCode.INVALID_TXN_STATE),
    ):
        assert add_partitions.decide(known, producer, [A], 0, NOW).error is error
        assert add_partitions.verify(known, producer, A) is error


def test_whoever_aborts_a_transaction_that_was_taken_over_fences_both_producers() -> None:
    aborted = fenced(taken_over(ongoing()), NOW)
    assert (aborted.producer_epoch, aborted.next_producer_epoch) == (5, -1)


def test_in_the_last_epoch_no_higher_one_is_given() -> None:
    known = taken_over(ongoing(LAST_USABLE_EPOCH))
    last = ProducerIdAndEpoch(7, LAST_USABLE_EPOCH)
    assert known.holder == last
    assert end_txn.decide(known, EndTxn(last, True, 0), None, NOW).error is ErrorCode.NONE


def test_the_log_remembers_who_took_it_over() -> None:
    known = taken_over(ongoing())
    assert decode_value("pay", encode_value(known, 1)) == known


class NoTimers:
    def schedule(self, *_: Any) -> None: ...
    def cancel(self, *_: Any) -> None: ...


@pytest.mark.parametrize(
    ("allowed", "version", "asked", "error"),
    [
        (False, 2, TWO_PHASE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (False, 2, KEEPING, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (True, 2, KEEPING, ErrorCode.NONE),
        (True, 0, TWO_PHASE, ErrorCode.NONE),
        (True, 0, KEEPING, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_who_may_take_part(allowed: bool, version: int, asked: InitProducerId, error: ErrorCode) -> None:
    limits = TransactionLimits(900_000, 7_000, 100, 500, allows_two_phase=allowed)
    shard = TransactionCoordinatorShard(5, NoTimers(), limits, lambda: version)
    decision = shard.init_producer_id(asked, 9, NOW)
    assert isinstance(decision.answer, TransactionResult)
    assert decision.answer.error is error
