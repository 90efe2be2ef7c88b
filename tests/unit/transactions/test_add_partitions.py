"""Partitions are added to a transaction, and leaders verify that they were added."""

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions.add_partitions import decide, verify
from sskafka.transactions.metadata import EPOCH_MAX, TransactionMetadata, TransactionState

S = TransactionState
NOW = 1_000
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
ME = ProducerIdAndEpoch(7, 3)


def known(state: S = S.EMPTY, *partitions: TopicPartition, **fields: object) -> TransactionMetadata:
    return TransactionMetadata("pay", 7, 3, 60_000, state, frozenset(partitions), 100, 100, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_first_partition_begins_a_transaction(state: S) -> None:
    changed = decide(known(state), ME, [A], 2, NOW).changed
    assert changed is not None
    assert (changed.state, changed.partitions, changed.start_ms, changed.client_version) == (S.ONGOING, {A}, NOW, 2)


def test_more_partitions_join_and_the_clock_goes_on() -> None:
    changed = decide(known(S.ONGOING, A), ME, [B], 0, NOW).changed
    assert changed is not None
    assert (changed.partitions, changed.start_ms, changed.last_update_ms) == ({A, B}, 100, NOW)


def test_partitions_that_are_in_it_already_change_nothing() -> None:
    assert decide(known(S.ONGOING, A, B), ME, [A], 0, NOW) == (ErrorCode.NONE, None, (-1, -1), False)


@pytest.mark.parametrize(
    ("state", "producer", "error"),
    [
        (S.ONGOING, ProducerIdAndEpoch(8, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (S.ONGOING, ProducerIdAndEpoch(7, 2), ErrorCode.PRODUCER_FENCED),
        (S.ONGOING, ProducerIdAndEpoch(7, 4), ErrorCode.PRODUCER_FENCED),
        (S.PREPARE_COMMIT, ME, ErrorCode.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, ME, ErrorCode.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, ProducerIdAndEpoch(7, 2), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_who_may_not_add(state: S, producer: ProducerIdAndEpoch, error: ErrorCode) -> None:
    transaction = known(state, A)
    assert decide(transaction, producer, [B], 0, NOW) == (error, None, (-1, -1), False)
    assert verify(transaction, producer, A) is error


def test_an_unknown_id_has_no_transaction() -> None:
    assert decide(None, ME, [A], 0, NOW).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert verify(None, ME, A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_producer_that_was_told_its_next_id_waits_until_that_is_its() -> None:
    last = TransactionMetadata(
        "pay", 7, EPOCH_MAX, 60_000, S.PREPARE_COMMIT, frozenset({A}), next_producer_id=8, client_version=2
    )
    assert decide(last, ProducerIdAndEpoch(8, 0), [A], 2, NOW).error is ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_late_record_is_found_out() -> None:
    assert verify(known(S.ONGOING, A), ME, A) is ErrorCode.NONE
    assert verify(known(S.ONGOING, A), ME, B) is ErrorCode.TRANSACTION_ABORTABLE
    assert verify(known(S.COMPLETE_COMMIT), ME, A) is ErrorCode.TRANSACTION_ABORTABLE


def test_nobody_adds_to_a_transaction_in_the_epoch_of_its_markers() -> None:
    """No producer ever gets the last epoch, but anybody can claim it."""
    preparing = known(S.PREPARE_COMMIT, A, next_producer_id=99)._replace(producer_epoch=EPOCH_MAX)
    verdict = decide(preparing, ProducerIdAndEpoch(7, EPOCH_MAX), [B], 2, NOW)
    assert (verdict.error, verdict.changed) == (ErrorCode.CONCURRENT_TRANSACTIONS, None)
