"""The state of idempotent and transactional producers in a log."""

from typing import Any

import pytest
from logs import DIRECTORY, NOW_MS, append, batch, decided_end, marker, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from sskafka.storage.log import AppendInfo, Log
from sskafka.storage.log_config import LogConfig

LAST_SEQUENCE = 2**31 - 1


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def log(disk: SimulatedDisk) -> Log:
    return reopen(disk)


def send(log: Log, sequence: int, count: int = 1, producer_id: int = 1, epoch: int = 0, **fields: Any) -> AppendInfo:
    values = [b"%d" % (sequence + n) for n in range(count)]
    fields |= {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return log.append_as_leader(batch(*values, **fields), 0, NOW_MS)


def end(log: Log, *, commit: bool, producer_id: int = 1, epoch: int = 0, coordinator_epoch: int = 0) -> AppendInfo:
    file_suffix = marker(producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
    return log.append_as_leader(file_suffix, 0, NOW_MS, from_client=False)


def is_repeated(first: AppendInfo, again: AppendInfo) -> bool:
    """Return whether the second append was answered as a duplicate of the first one."""
    assert not first.duplicate
    offsets = [(info.base_offset, info.last_offset, info.log_start_offset) for info in (first, again)]
    return offsets[0] == offsets[1] and again.duplicate and again.append_time_ms == NOW_MS


# ---- sequences


def test_the_last_five_batches_are_answered_with_their_offsets(log: Log) -> None:
    sent = [send(log, 2 * n, count=2) for n in range(6)]
    for n in range(1, 6):
        again = send(log, 2 * n, count=2)
        assert is_repeated(sent[n], again)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 0, count=2)
    assert log.log_end_offset == 12


def test_a_batch_of_another_size_is_no_duplicate(log: Log) -> None:
    send(log, 0, count=2)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 1)


def test_a_gap_in_the_sequence_is_refused(log: Log) -> None:
    send(log, 0)
    with pytest.raises(OutOfOrderSequenceError, match="sequence 2 instead of 1"):
        send(log, 2)


def test_a_producer_that_is_not_known_may_begin_anywhere(log: Log) -> None:
    assert send(log, 17).base_offset == 0
    assert send(log, 18).base_offset == 1


def test_sequences_wrap(log: Log) -> None:
    send(log, LAST_SEQUENCE - 1)
    assert send(log, LAST_SEQUENCE, count=3).base_offset == 1  # LAST_SEQUENCE, 0, 1
    assert send(log, LAST_SEQUENCE, count=3).duplicate
    assert send(log, 2).base_offset == 4
    send(log, 3, producer_id=2)


def test_a_new_epoch_begins_with_sequence_0(log: Log) -> None:
    send(log, 0)
    with pytest.raises(OutOfOrderSequenceError, match="begin with sequence 0"):
        send(log, 1, epoch=1)
    assert send(log, 0, epoch=1).base_offset == 1
    with pytest.raises(InvalidProducerEpochError):
        send(log, 1, epoch=0)
    assert send(log, 0, epoch=1).duplicate


def test_a_producer_must_send_sequences(log: Log) -> None:
    with pytest.raises(InvalidRecordError):
        send(log, -1)
    with pytest.raises(InvalidProducerEpochError):
        send(log, 0, epoch=-1)


def test_batches_sent_together_are_checked_as_a_row(log: Log) -> None:
    def numbered(*sequences: int) -> bytearray:
        batches = [batch(b"v", producer_id=1, producer_epoch=0, base_sequence=n) for n in sequences]
        return bytearray().join(batches)

    assert log.append_as_leader(numbered(0, 1, 2), 0, NOW_MS).last_offset == 2
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(numbered(3, 5), 0, NOW_MS)
    with pytest.raises(InvalidRecordError):
        log.append_as_leader(numbered(2, 3), 0, NOW_MS)
    assert log.append_as_leader(numbered(3, 4), 0, NOW_MS).base_offset == 3


def test_a_follower_believes_its_leader(log: Log) -> None:
    log.append_as_follower(batch(b"a", producer_id=1, producer_epoch=3, base_sequence=9))
    log.append_as_follower(batch(b"b", base_offset=1, producer_id=1, producer_epoch=2, base_sequence=4))
    assert send(log, 5, epoch=2).base_offset == 2


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [100, 250, 1 << 20])
def test_duplicates_are_known_after_a_restart(disk: SimulatedDisk, clean: bool, segment_bytes: int) -> None:
    config = LogConfig(segment_bytes=segment_bytes)
    log = reopen(disk, config)
    sent = [send(log, n) for n in range(8)]
    if clean:
        log.close()
    log = reopen(disk, config, was_clean_stop=clean)
    for n in range(3, 8):
        assert is_repeated(sent[n], send(log, n)), f"sequence {n}"
    assert send(log, 8).base_offset == 8


def test_producers_are_forgotten_after_a_while(disk: SimulatedDisk, log: Log) -> None:
    send(log, 0, timestamp=5)  # an old timestamp does not make an old producer
    send(log, 0, producer_id=2, transactional=True)
    assert log.producers.expire(NOW_MS + 999, 1000) == 0
    assert log.producers.expire(NOW_MS + 1000, 1000) == 1
    assert log.producers.producers.keys() == {2}, "one with an open transaction is kept"
    log.close()
    assert reopen(disk, was_clean_stop=True).producers.producers.keys() == {2}


def test_a_forgotten_producer_goes_on_with_any_sequence(log: Log) -> None:
    send(log, 0, count=2)
    assert log.producers.expire(NOW_MS + 1000, 1000) == 1
    assert send(log, 2).duplicate is False


def test_a_forgotten_producer_begins_anew_after_a_marker_without_data(log: Log) -> None:
    """As in Apache Kafka: the marker makes its epoch known again, without batches."""
    send(log, 0, count=2, transactional=True)
    end(log, commit=True)
    assert log.producers.expire(NOW_MS + 1000, 1000) == 1
    end(log, commit=True)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 2, transactional=True)
    assert send(log, 0, transactional=True).duplicate is False


# ---- transactions


def test_an_open_transaction_holds_the_last_stable_offset(log: Log) -> None:
    append(log, b"plain")
    assert log.producers.first_unstable_offset(1) is None
    send(log, 0, transactional=True)
    append(log, b"plain")
    assert decided_end(log) == 1
    assert log.producers.first_unstable_offset(3) == 1
    end(log, commit=True)
    assert decided_end(log) == 4
    assert log.producers.first_unstable_offset(3) == 1, "the marker is not replicated yet"
    assert log.producers.first_unstable_offset(4) is None


def test_aborted_transactions_are_listed_for_readers(log: Log) -> None:
    send(log, 0, transactional=True)  # 0
    send(log, 0, producer_id=2, transactional=True)  # 1
    end(log, commit=False)  # 2
    end(log, commit=True, producer_id=2)  # 3
    send(log, 1, transactional=True)  # 4
    end(log, commit=False)  # 5
    aborted = log.aborted_transactions(0, 6)
    assert [(a.producer_id, a.first_offset, a.last_offset, a.last_stable_offset) for a in aborted] == [
        (1, 0, 2, 1),
        (1, 4, 5, 6),
    ]
    assert [a.first_offset for a in log.aborted_transactions(0, 1)] == [0]
    assert [a.first_offset for a in log.aborted_transactions(2, 4)] == [0]
    assert log.aborted_transactions(3, 4) == []
    assert [a.first_offset for a in log.aborted_transactions(3, 5)] == [4]


def test_a_marker_without_a_transaction_aborts_nothing(log: Log) -> None:
    end(log, commit=False)
    assert log.aborted_transactions(0, 1) == []


def test_a_batch_outside_of_the_open_transaction_is_refused(log: Log) -> None:
    send(log, 0, transactional=True)
    with pytest.raises(InvalidTransactionStateError):
        send(log, 1)


def test_markers_of_old_epochs_are_refused(log: Log) -> None:
    send(log, 0, epoch=3, transactional=True)
    with pytest.raises(InvalidProducerEpochError):
        end(log, commit=True, epoch=2)
    end(log, commit=True, epoch=3, coordinator_epoch=7)
    with pytest.raises(TransactionCoordinatorFencedError):
        end(log, commit=True, epoch=3, coordinator_epoch=6)


def test_a_marker_may_raise_the_epoch(log: Log) -> None:
    send(log, 0, epoch=3, transactional=True)
    end(log, commit=False, epoch=4)
    with pytest.raises(InvalidProducerEpochError):
        send(log, 1, epoch=3, transactional=True)
    assert send(log, 0, epoch=4, transactional=True).base_offset == 2


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [160, 1 << 20])
def test_transactions_survive_a_restart(disk: SimulatedDisk, clean: bool, segment_bytes: int) -> None:
    config = LogConfig(segment_bytes=segment_bytes)
    log = reopen(disk, config)
    send(log, 0, transactional=True)
    end(log, commit=False)
    send(log, 1, transactional=True)
    send(log, 0, producer_id=2, transactional=True)
    end(log, commit=False)
    before = log.aborted_transactions(0, 5)
    assert len(before) == 2
    if clean:
        log.close()
    log = reopen(disk, config, was_clean_stop=clean)
    assert log.aborted_transactions(0, 5) == before
    assert decided_end(log) == 3
    end(log, commit=True, producer_id=2)
    assert decided_end(log) == 6


def test_truncation_reopens_and_forgets_transactions(log: Log) -> None:
    send(log, 0, transactional=True)
    end(log, commit=False)
    send(log, 1, transactional=True)
    log.truncate_to(1)
    assert log.aborted_transactions(0, 1) == []
    assert decided_end(log) == 0
    assert not log.log_directory.disk.exists(f"{DIRECTORY}/{0:020d}.txnindex")
    end(log, commit=True)
    assert decided_end(log) == 2
    assert send(log, 1).base_offset == 2


def test_truncation_does_not_make_producers_look_long_gone(log: Log) -> None:
    append(log, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, b"b", producer_id=7, producer_epoch=0, base_sequence=1)
    log.truncate_to(1)
    assert log.producers.expire(NOW_MS + 1000, 2000) == 0
    assert log.producers.expire(NOW_MS + 3000, 2000) == 1
