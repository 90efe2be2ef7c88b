"""A leader accepts the first batch of a transaction only after the coordinator has confirmed it (KIP-890)."""

import pytest
from logs import NOW_MS, append, batch, decided_end, marker, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
)
from sskafka.storage.log import Log
from sskafka.storage.transactions.verification import Verification

ME = 7


@pytest.fixture
def log() -> Log:
    opened = reopen(SimulatedDisk())
    opened.producers.verifies_transactions = True
    return opened


def write(log: Log, sequence: int = 0, epoch: int = 0, *, transactional: bool = True) -> int:
    return append(log, b"v", producer_id=ME, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)


def end(log: Log, epoch: int = 0, *, commit: bool = True) -> None:
    log.append_as_leader(marker(ME, epoch, commit=commit), 0, NOW_MS, from_client=False)


def verify(log: Log, epoch: int = 0) -> None:
    assert log.producers.verified(log.producers.begin_verification(ME, epoch, 0))


def test_the_first_batch_of_a_transaction_needs_the_coordinators_word(log: Log) -> None:
    with pytest.raises(InvalidTransactionStateError):
        write(log)
    verification = log.producers.begin_verification(ME, 0, 0)
    with pytest.raises(InvalidTransactionStateError):
        write(log)
    assert log.producers.verified(verification)
    assert write(log) == 0
    assert write(log, 1) == 1


def test_a_batch_that_comes_after_the_end_opens_nothing(log: Log) -> None:
    verify(log)
    write(log)
    end(log)
    with pytest.raises(InvalidTransactionStateError):
        write(log, 1)
    assert decided_end(log) == log.log_end_offset


def test_an_end_between_question_and_answer_counts(log: Log) -> None:
    verification = log.producers.begin_verification(ME, 0, 0)
    end(log, commit=False)
    assert not log.producers.verified(verification)
    with pytest.raises(InvalidTransactionStateError):
        write(log)


def test_who_asked_twice_finds_it_opened_by_the_first_answer(log: Log) -> None:
    first = log.producers.begin_verification(ME, 0, 0)
    second = log.producers.begin_verification(ME, 0, 0)
    assert log.producers.verified(first)
    write(log)
    assert log.producers.verified(second)
    end(log)
    assert not log.producers.verified(second)


def test_the_word_counts_for_one_epoch_alone(log: Log) -> None:
    verify(log)
    with pytest.raises(InvalidTransactionStateError):
        write(log, epoch=1)


def test_a_denied_verification_is_forgotten(log: Log) -> None:
    verification = log.producers.begin_verification(ME, 0, 0)
    log.producers.give_up_verification(verification)
    assert not log.producers.verified(verification)


def test_a_later_batch_does_not_overtake_the_first(log: Log) -> None:
    log.producers.begin_verification(ME, 0, 0)
    verification = log.producers.begin_verification(ME, 0, 5)
    log.producers.verified(verification)
    with pytest.raises(OutOfOrderSequenceError):
        write(log, 5)
    assert write(log, 0) == 0


def test_where_every_transaction_has_an_epoch_it_begins_with_sequence_0(log: Log) -> None:
    verification = log.producers.begin_verification(ME, 0, 5, supports_epoch_bump=True)
    log.producers.verified(verification)
    with pytest.raises(OutOfOrderSequenceError):
        write(log, 5)


def test_batches_outside_of_transactions_need_nobodys_word(log: Log) -> None:
    assert write(log, transactional=False) == 0


def test_batches_sent_together_are_verified_too(log: Log) -> None:
    def together() -> bytearray:
        return bytearray().join(
            batch(value, producer_id=ME, producer_epoch=0, base_sequence=sequence, transactional=True)
            for sequence, value in enumerate((b"a", b"b"))
        )

    with pytest.raises(InvalidTransactionStateError):
        log.append_as_leader(together(), 0, NOW_MS)
    verify(log)
    assert log.append_as_leader(together(), 0, NOW_MS).last_offset == 1


def test_a_late_marker_does_not_end_the_next_transaction(log: Log) -> None:
    verify(log)
    write(log)
    log.producers.check_bumped_marker(ME, 1)
    end(log, 1)
    log.producers.check_bumped_marker(ME, 1)  # written twice: nothing is open
    verify(log, epoch=1)
    write(log, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        log.producers.check_bumped_marker(ME, 1)
    log.producers.check_bumped_marker(ME, 2)


def test_coordinators_write_without_sequences_but_not_for_the_fenced(log: Log) -> None:
    for _ in range(2):
        offsets = batch(b"offset", producer_id=ME, producer_epoch=1, transactional=True)
        log.append_as_leader(offsets, 0, NOW_MS, from_client=False)
    assert decided_end(log) == 0
    late = batch(b"offset", producer_id=ME, producer_epoch=0, transactional=True)
    with pytest.raises(InvalidProducerEpochError):
        log.append_as_leader(late, 0, NOW_MS, from_client=False)


def second_version(log: Log, epoch: int) -> Verification:
    return log.producers.begin_verification(ME, epoch, 0, supports_epoch_bump=True)


def test_the_marker_of_the_transaction_before_leaves_the_next_ones_verification_alone(log: Log) -> None:
    """A producer of the second version begins its next transaction while markers of the last are on their way."""
    verify(log)
    write(log)
    verification = second_version(log, 1)
    end(log, 1)
    assert log.producers.verified(verification)
    assert write(log, epoch=1) == 2


@pytest.mark.parametrize("supports_epoch_bump", [True, False])
def test_a_marker_of_an_older_epoch_is_about_an_older_transaction(log: Log, supports_epoch_bump: bool) -> None:
    verification = log.producers.begin_verification(ME, 2, 0, supports_epoch_bump=supports_epoch_bump)
    end(log, 1)
    assert log.producers.verified(verification)


def test_the_marker_of_its_own_transaction_ends_a_verification_of_the_second_version(log: Log) -> None:
    verification = second_version(log, 1)
    end(log, 2, commit=False)
    assert not log.producers.verified(verification)
    with pytest.raises(InvalidProducerEpochError):
        write(log, epoch=1)


def test_a_zombies_question_does_not_replace_its_successors(log: Log) -> None:
    verification = second_version(log, 2)
    of_zombie = second_version(log, 1)
    assert log.producers.verified(verification)
    log.producers.give_up_verification(of_zombie)
    assert write(log, epoch=2) == 0


def test_verifications_that_nobody_asks_for_any_more_are_forgotten(log: Log) -> None:
    verification = second_version(log, 1)
    log.producers.expire(NOW_MS, 1)
    assert log.producers.verified(verification)
    second_version(log, 1)
    log.producers.expire(NOW_MS, 1)
    assert log.producers.verified(verification), "the producer has asked again in between"
    log.producers.expire(NOW_MS, 1)
    assert not log.producers.verified(verification)
