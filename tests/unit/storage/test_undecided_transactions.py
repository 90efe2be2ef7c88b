"""Transactions whose marker is not below the high watermark stay undecided for readers, even after a reload."""

import pytest
from logs import NOW_MS, append, marker, reopen
from simulated_disk import SimulatedDisk

from sskafka.model.ids import TopicPartition
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties

CONFIG = LogConfig(segment_ms=1000)
LATER_MS = NOW_MS + 10_000


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def write_transaction_and_roll(log: Log) -> None:
    """A transaction from 0 to its end at 2, a snapshot at 3, records up to 5."""
    append(log, b"in it", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    append(log, b"outside")
    log.append_as_leader(marker(7, 0, commit=True), 0, NOW_MS, from_client=False)
    assert log.maybe_roll(LATER_MS)
    append(log, b"behind", now_ms=LATER_MS)
    append(log, b"it", now_ms=LATER_MS)


def check(log: Log) -> None:
    assert log.producers.first_unstable_offset(high_watermark=2) == 0, (
        "the end of the transaction is not replicated yet"
    )
    assert log.producers.first_unstable_offset(high_watermark=3) is None


def test_a_log_that_is_not_reloaded(disk: SimulatedDisk) -> None:
    log = reopen(disk, CONFIG)
    write_transaction_and_roll(log)
    check(log)


def test_after_a_cut_behind_a_snapshot(disk: SimulatedDisk) -> None:
    log = reopen(disk, CONFIG)
    write_transaction_and_roll(log)
    log.advance_high_watermark(2)
    assert log.truncate_to(4) == 4
    check(log)


@pytest.mark.parametrize("is_clean", [True, False])
def test_after_a_restart(disk: SimulatedDisk, is_clean: bool) -> None:
    log = reopen(disk, CONFIG)
    write_transaction_and_roll(log)
    if is_clean:
        log.close()
    check(reopen(disk, CONFIG, was_clean_stop=is_clean, high_watermark=2))


def test_a_restart_reads_no_more_where_nothing_is_undecided(disk: SimulatedDisk) -> None:
    log = reopen(disk, CONFIG)
    write_transaction_and_roll(log)
    log.close()
    reads: list[str] = []
    disk.fault = lambda operation, path: reads.append(path) if operation == "read" and path.endswith(".log") else None
    again = reopen(disk, CONFIG, was_clean_stop=True, high_watermark=5)
    assert again.producers.first_unstable_offset(5) is None
    usual = len(reads)
    reads.clear()
    reopen(disk, CONFIG, was_clean_stop=True)
    assert usual == len(reads)


def test_after_a_move_to_another_directory(disk: SimulatedDisk) -> None:
    manager = LogManager.open(disk, ("/a", "/b"), node_id=1, format_as=lambda: MetaProperties("cluster", 1))
    topic_partition = TopicPartition("orders", 0)
    log = manager.open_log(topic_partition, bytes(range(16)), CONFIG, NOW_MS)
    write_transaction_and_roll(log)
    home = manager.log_dir_of(topic_partition)
    (target,) = [directory for directory in manager.directories if directory is not home]
    move = manager.begin_move(topic_partition, target, NOW_MS)
    check(manager.finish_move(move, LATER_MS, high_watermark=2))


def test_the_checkpointed_high_watermark_counts_after_a_restart(disk: SimulatedDisk) -> None:
    def start() -> LogManager:
        return LogManager.open(disk, ("/a",), node_id=1, format_as=lambda: MetaProperties("cluster", 1))

    topic_partition = TopicPartition("orders", 0)
    manager = start()
    write_transaction_and_roll(manager.open_log(topic_partition, bytes(range(16)), CONFIG, NOW_MS))
    manager.checkpoint_high_watermarks({topic_partition: 2})
    manager.close()
    check(start().open_log(topic_partition, bytes(range(16)), CONFIG, LATER_MS))
