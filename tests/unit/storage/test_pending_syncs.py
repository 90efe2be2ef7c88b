"""Logs that are deleted, moved or begun anew while threads sync for them."""

import errno
from random import Random

import pytest
from background_steps import Steps
from logs import NOW_MS, append
from simulated_disk import SimulatedDisk

from sskafka.model.ids import TopicPartition
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties

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
