"""Logs that are deleted, moved or restarted while threads sync their files."""

import errno
from random import Random

import pytest
from background_steps import Steps
from logs import DIRECTORY, NOW_MS, append, read_records, reopen
from simulated_disk import SimulatedDisk

from sskafka.model.ids import TopicPartition
from sskafka.storage.errors import LogDirectoryError
from sskafka.storage.flusher import Flusher
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.storage.recovery.opening import open_log

TP = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
EACH_RECORD = LogConfig(flush_messages=1)


class Lab:
    """Threads come to an end in any order, or not yet."""

    def __init__(self, seed: int = 0, config: LogConfig = EACH_RECORD) -> None:
        self.random = Random(seed)
        self.disk = SimulatedDisk()
        self.steps = Steps()
        self.manager = LogManager.open(
            self.disk, ("/a", "/b"), node_id=1, format_as=lambda: MetaProperties("cluster", 1), background=self.steps
        )
        self.log = self.opened(config)
        self.steps.finish()

    def opened(self, config: LogConfig) -> Log:
        return self.manager.open_log(TP, TOPIC_ID, config, NOW_MS, directory=self.manager.directories[0])

    def go_on_a_little(self) -> None:
        if self.random.random() < 0.5:
            self.steps.turn()
        if self.steps.threads and self.random.random() < 0.5:
            self._finish_a_thread()

    def finish(self) -> None:
        while self.steps.turns or self.steps.threads:
            self.steps.turn()
            while self.steps.threads:
                self._finish_a_thread()

    def _finish_a_thread(self) -> None:
        self.random.shuffle(self.steps.threads)
        self.steps.finish_thread()


@pytest.mark.parametrize("seeds", [range(100), range(100, 200)], ids=str)
def test_a_log_that_is_deleted_in_the_middle_of_its_syncs_does_no_harm_to_its_directory(seeds: range) -> None:
    for seed in seeds:
        lab = Lab(seed)
        for epoch in range(lab.random.randint(1, 5)):
            append(lab.log, b"a", epoch=epoch)
            lab.go_on_a_little()
        lab.manager.delete_log(TP, NOW_MS)
        lab.finish()
        assert lab.log.log_directory.failure is None, f"seed {seed}"


@pytest.mark.parametrize("seeds", [range(100), range(100, 200)], ids=str)
def test_a_log_that_is_moved_in_the_middle_of_its_syncs_does_no_harm_to_either_directory(seeds: range) -> None:
    for seed in seeds:
        lab = Lab(seed)
        move = lab.manager.begin_move(TP, lab.manager.directories[1], NOW_MS)
        for epoch in range(lab.random.randint(1, 5)):
            append(lab.log, b"a", epoch=epoch)
            for piece in move.next_piece(1 << 20):
                move.append(piece.read(), NOW_MS)
            lab.go_on_a_little()
        moved = lab.manager.finish_move(move, NOW_MS)
        lab.finish()
        assert all(directory.is_online for directory in lab.manager.directories), f"seed {seed}"
        assert (moved.ready_offset, moved.epochs.entries) == (moved.log_end_offset, lab.log.epochs.entries)


@pytest.mark.parametrize("begins_at", [0, 1, 100])
def test_a_log_that_begins_anew_waits_for_nothing(begins_at: int) -> None:
    lab = Lab()
    append(lab.log, b"a")
    append(lab.log, b"b")
    lab.log.truncate_fully_and_start_at(begins_at)
    assert lab.log.ready_offset == lab.log.log_end_offset == begins_at
    lab.finish()
    append(lab.log, b"c", epoch=3)
    assert lab.log.ready_offset == begins_at
    lab.finish()
    assert lab.log.ready_offset == begins_at + 1


def test_a_directory_that_failed_with_no_log_in_it_is_let_go_of_at_the_stop() -> None:
    lab = Lab()
    lab.manager.directories[1].health.fail(OSError(errno.EIO, "Input/output error"))
    lab.manager.close()
    again = LogManager.open(lab.disk, ("/a", "/b"), node_id=1)
    assert all(directory.is_online for directory in again.directories)


def test_a_start_at_the_border_of_a_segment_is_kept_while_a_thread_syncs_the_names() -> None:
    lab = Lab(config=LogConfig(segment_bytes=400))
    for n in range(20):
        append(lab.log, b"%d" % n)
    lab.finish()
    lab.log.flush()
    border = list(lab.log.segments)[2].base_offset
    before = {path: node for path, node in lab.disk.nodes.items() if "orders-0" in path}
    lab.log.increment_log_start_offset(border)
    lab.log.flush_soon()
    lab.steps.turn()
    lab.manager.checkpoint_log_start_offsets()
    lab.disk.nodes |= before  # the power is cut before the thread is through
    lab.manager.release()
    again = LogManager.open(lab.disk, ("/a", "/b"), node_id=1)
    assert again.open_log(TP, TOPIC_ID, LogConfig(segment_bytes=400), NOW_MS).log_start_offset == border


# ---- cuts


SMALL_SEGMENTS = LogConfig(segment_bytes=700)


def threaded_log(disk: SimulatedDisk, steps: Steps, recovery_point: int = 0) -> Log:
    directory = LogDirHealth(disk, "/data")
    flusher = Flusher(directory, steps)
    return open_log(
        directory, DIRECTORY, TP, SMALL_SEGMENTS, now_ms=NOW_MS, flusher=flusher, recovery_point=recovery_point
    )


@pytest.mark.parametrize("seeds", [range(100), range(100, 200)], ids=str)
def test_an_old_recovery_point_of_a_log_that_was_cut_is_not_believed_after_a_restart(seeds: range) -> None:
    for seed in seeds:
        disk, steps, random = SimulatedDisk(), Steps(), Random(seed)
        log = threaded_log(disk, steps)
        for n in range(40):
            append(log, b"old %d" % n, epoch=1)
        log.flush()
        checkpointed = log.recovery_point
        log.truncate_to(random.randint(5, 20))
        steps.finish()
        disk.crash(random)
        again = threaded_log(disk, steps, checkpointed)
        for n in range(25):
            append(again, b"new %d" % n, epoch=2)
            if random.random() < 0.3:
                steps.turn()
            if random.random() < 0.3 and steps.threads:
                steps.finish_thread()
        disk.crash(random)
        last = reopen(disk, SMALL_SEGMENTS, recovery_point=checkpointed)
        assert [offset for offset, _ in read_records(last)] == list(range(last.log_end_offset)), f"seed {seed}"


def test_without_threads_a_cut_whose_epochs_find_no_room_takes_the_directory_offline() -> None:
    """Nobody would try again, and whoever syncs the log by himself would take it for done."""
    disk = SimulatedDisk()
    log = reopen(disk)
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=2)

    def full(operation: str, path: str) -> None:
        if operation == "write" and "leader-epoch" in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    disk.fault = full
    with pytest.raises(LogDirectoryError):
        log.truncate_to(1)
    assert not log.is_in_service
