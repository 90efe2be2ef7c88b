"""Small files that a thread must sync before newly appended batches are acknowledged."""

import errno
from random import Random

import pytest
from background_steps import Steps
from logs import DIRECTORY, NOW_MS, TP, append, batch, read_records, records, reopen
from simulated_disk import SimulatedDisk

from sskafka.model.ids import TopicPartition
from sskafka.records.batch import iter_headers
from sskafka.storage.disk import read_file
from sskafka.storage.flusher import Flusher
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.storage.recovery.opening import open_log

CHECKPOINT = f"{DIRECTORY}/leader-epoch-checkpoint"
SMALL_SEGMENTS = LogConfig(segment_bytes=400)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def steps() -> Steps:
    return Steps()


def threaded_log(disk: SimulatedDisk, steps: Steps, config: LogConfig | None = None) -> Log:
    directory = LogDirHealth(disk, "/data")
    return open_log(directory, DIRECTORY, TP, config or LogConfig(), now_ms=NOW_MS, flusher=Flusher(directory, steps))


def epochs_on_disk(disk: SimulatedDisk) -> list[tuple[int, int]]:
    return LeaderEpochs.load(disk, CHECKPOINT).entries


def test_a_new_epoch_is_synced_by_a_thread_and_acknowledgements_wait(disk: SimulatedDisk, steps: Steps) -> None:
    log = threaded_log(disk, steps)
    ready: list[int] = []
    log.on_ready = lambda: ready.append(log.ready_offset)
    disk.syncs.clear()
    append(log, b"a", epoch=3)
    append(log, b"b", epoch=3)
    steps.turn()
    assert not disk.syncs, "the loop has waited for the disk"
    assert (log.log_end_offset, log.ready_offset, ready) == (2, 0, [])
    assert log.epochs.entries == [(3, 0)]
    steps.finish()
    assert (log.ready_offset, ready) == (2, [2])
    assert epochs_on_disk(disk) == [(3, 0)]
    assert all("leader-epoch-checkpoint" in path for path in disk.syncs), "the segment itself is left to the system"
    append(log, b"c", epoch=3)
    assert log.ready_offset == 3, "later appends wait for nothing"
    assert not steps.turns


def test_a_sync_of_a_whole_segment_does_not_hold_up_a_new_epoch(disk: SimulatedDisk, steps: Steps) -> None:
    log = threaded_log(disk, steps)
    append(log, b"a", epoch=1)
    steps.finish()
    log.flush_soon()
    steps.turn()
    append(log, b"b", epoch=2)
    steps.turn()
    (_, large), (work, done) = steps.threads
    work()
    done(None)
    assert log.ready_offset == 2
    assert large is not None


def test_a_follower_waits_likewise(disk: SimulatedDisk, steps: Steps) -> None:
    log = threaded_log(disk, steps)
    log.append_as_follower(batch(b"a", leader_epoch=2) + batch(b"b", base_offset=1, leader_epoch=5))
    assert (log.log_end_offset, log.ready_offset) == (2, 0)
    steps.finish()
    assert log.ready_offset == 2
    assert epochs_on_disk(disk) == [(2, 0), (5, 1)]


def test_after_a_cut_nothing_is_acknowledged_before_the_cut_is_durable(disk: SimulatedDisk, steps: Steps) -> None:
    log = threaded_log(disk, steps)
    for epoch in (1, 1, 4, 4):
        append(log, b"v", epoch=epoch)
    steps.finish()
    disk.syncs.clear()
    log.truncate_to(2)
    assert not disk.syncs, "the loop has waited for the disk"
    append(log, b"w", epoch=1)  # no new epoch, and yet the file still says that epoch 4 begins at 2
    assert (log.log_end_offset, log.ready_offset) == (3, 2)
    assert epochs_on_disk(disk) == [(1, 0), (4, 2)]
    steps.finish()
    assert log.ready_offset == 3
    assert epochs_on_disk(disk) == [(1, 0)]


def test_a_full_disk_holds_acknowledgements_back_until_there_is_room(disk: SimulatedDisk, steps: Steps) -> None:
    log = threaded_log(disk, steps)

    def full(operation: str, path: str) -> None:
        if operation == "write" and "leader-epoch" in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    disk.fault = full
    append(log, b"a", epoch=1)
    log.flush_soon()
    steps.finish()
    assert log.log_directory.failure is None, "a full disk passes"
    assert log.lacks_room
    assert (log.ready_offset, log.recovery_point) == (0, 0)
    log.retry_pending_sync()
    steps.finish()
    assert log.ready_offset == 0
    disk.fault = None
    log.retry_pending_sync()
    steps.finish()
    assert log.ready_offset == 1
    assert not log.lacks_room
    assert epochs_on_disk(disk) == [(1, 0)]


def test_a_failed_sync_takes_the_directory_offline(disk: SimulatedDisk, steps: Steps) -> None:
    log = threaded_log(disk, steps)

    def broken(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "Input/output error", path)

    disk.fault = broken
    append(log, b"a", epoch=1)
    steps.finish()
    assert log.ready_offset == 0
    assert log.log_directory.failure is not None


def test_a_deleted_log_writes_nothing_into_the_directory_that_has_its_name_now(
    disk: SimulatedDisk, steps: Steps
) -> None:
    log = threaded_log(disk, steps)
    append(log, b"a", epoch=9)
    steps.turn()
    log.abandon()
    disk.rename(DIRECTORY, f"{DIRECTORY}.gone")
    append(reopen(disk), b"b", epoch=1)
    steps.finish()
    assert epochs_on_disk(disk) == [(1, 0)]


def test_an_older_version_never_replaces_a_newer_one(disk: SimulatedDisk) -> None:
    disk.make_directory(DIRECTORY)
    epochs = LeaderEpochs.load(disk, CHECKPOINT)
    epochs.assign(1, 0, save=False)
    older = epochs.unsaved()
    epochs.assign(2, 5, save=False)
    epochs.unsaved().sync()
    older.sync()
    assert epochs_on_disk(disk) == [(1, 0), (2, 5)]
    assert epochs.is_saved


def test_a_clean_stop_saves_what_no_thread_has_saved_yet(disk: SimulatedDisk, steps: Steps) -> None:
    log = threaded_log(disk, steps)
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=2)
    log.close()
    again = reopen(disk, was_clean_stop=True)
    assert again.epochs.entries == [(1, 0), (2, 1)]
    assert read_records(again) == [(0, b"a"), (1, b"b")]


# ---- crashes


class Run:
    """Appends, cuts and threads at random; then the process is killed, or the power is cut."""

    def __init__(self, seed: int, config: LogConfig) -> None:
        self.random = Random(seed)
        self.disk = SimulatedDisk()
        self.steps = Steps()
        self.config = config
        self.log = threaded_log(self.disk, self.steps, config)
        self.epoch = 0
        self.count = 0

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self._step()

    def _step(self) -> None:
        match self.random.randrange(12):
            case 0 | 1:
                self.epoch += self.random.randint(1, 3)
            case 2:
                log = self.log
                log.truncate_to(self.random.randint(log.log_start_offset, log.log_end_offset))
            case 3 | 4 | 5:
                self.steps.turn()
            case 6 | 7 if self.steps.threads:
                self.steps.finish_thread()
            case 8:
                self.log.flush_soon()
            case _:
                self.count += 1
                append(self.log, b"%d" % self.count, epoch=self.epoch)

    def acknowledged(self) -> list[tuple[int, bytes | None]]:
        return read_records(self.log, up_to=self.log.ready_offset)

    def check(self, again: Log, acknowledged: list[tuple[int, bytes | None]]) -> None:
        stored = read_records(again)
        assert stored[: len(acknowledged)] == acknowledged, "something acknowledged is lost"
        data = b"".join(bytes(part.read()) for part in again.read(0, 1 << 30, again.log_end_offset))
        written: list[tuple[int, int]] = []
        for _, header in iter_headers(memoryview(data)):
            if not written or header.leader_epoch != written[-1][0]:
                written.append((header.leader_epoch, header.base_offset))
        assert again.epochs.entries == written, "the epochs are not those of the batches"
        assert [offset for offset, _ in records(data)] == list(range(again.log_end_offset))


@pytest.mark.parametrize("seeds", [range(first, first + 50) for first in range(0, 300, 50)], ids=str)
@pytest.mark.parametrize("segment_bytes", [400, 1 << 20])
def test_a_kill_loses_nothing_acknowledged_whatever_the_threads_had_done(seeds: range, segment_bytes: int) -> None:
    for seed in seeds:
        run = Run(seed, LogConfig(segment_bytes=segment_bytes))
        run.go(60)
        recovery_point, acknowledged = run.log.recovery_point, run.acknowledged()
        run.check(reopen(run.disk, run.config, recovery_point=recovery_point), acknowledged)


@pytest.mark.parametrize("seeds", [range(first, first + 50) for first in range(0, 300, 50)], ids=str)
@pytest.mark.parametrize("segment_bytes", [400, 1 << 20])
def test_a_power_cut_loses_nothing_that_was_acknowledged_after_its_flush(seeds: range, segment_bytes: int) -> None:
    for seed in seeds:
        run = Run(seed, LogConfig(segment_bytes=segment_bytes, flush_messages=1))
        run.go(60)
        recovery_point, acknowledged = run.log.recovery_point, run.acknowledged()
        run.disk.crash(run.random)
        run.check(reopen(run.disk, run.config, recovery_point=recovery_point), acknowledged)


def test_what_replaces_a_cut_end_is_not_believed_because_of_an_old_recovery_point() -> None:
    """The checkpoint is written now and then; until then it says more than is true of a log that was cut."""
    for seed in range(200):
        disk, steps, random = SimulatedDisk(), Steps(), Random(seed)
        log = threaded_log(disk, steps, LogConfig(segment_bytes=700))
        for n in range(40):
            append(log, b"old %d" % n, epoch=1)
        log.flush()
        steps.finish()
        checkpointed = log.recovery_point
        log.truncate_to(random.randint(5, 20))
        for n in range(25):
            append(log, b"new %d" % n, epoch=2)
            if random.random() < 0.3:
                steps.turn()
            if random.random() < 0.3 and steps.threads:
                steps.finish_thread()
        disk.crash(random)
        again = reopen(disk, LogConfig(segment_bytes=700), recovery_point=checkpointed)
        stored = read_records(again)
        assert [offset for offset, _ in stored] == list(range(len(stored))), f"seed {seed}: a hole"
        assert again.log_end_offset == len(stored), f"seed {seed}"


def test_a_start_at_the_border_of_a_segment_survives_a_crash_that_brings_the_segment_back() -> None:
    disk, steps = SimulatedDisk(), Steps()
    meta = MetaProperties("cluster", 1)

    def start() -> LogManager:
        return LogManager.open(disk, ("/a",), node_id=1, format_as=lambda: meta, background=steps)

    def open_orders(manager: LogManager) -> Log:
        return manager.open_log(TopicPartition("orders", 0), bytes(range(16)), SMALL_SEGMENTS, NOW_MS)

    manager = start()
    log = open_orders(manager)
    for n in range(20):
        append(log, b"%d" % n)
    log.flush()
    steps.finish()
    border = list(log.segments)[2].base_offset
    before = {path: node for path, node in disk.nodes.items() if "orders-0" in path}
    log.increment_log_start_offset(border)
    manager.checkpoint_log_start_offsets()
    disk.nodes |= before  # the renames did not last
    manager.release()
    again = open_orders(start())
    assert again.log_start_offset == border
    assert read_records(again)[0][0] == border
    assert read_file(disk, "/a/log-start-offset-checkpoint")


# ---- new and deleted logs


def test_a_new_log_is_identified_by_a_thread_and_acknowledgements_wait(disk: SimulatedDisk, steps: Steps) -> None:
    manager = LogManager.open(
        disk, ("/a",), node_id=1, format_as=lambda: MetaProperties("cluster", 1), background=steps
    )
    synced: list[str] = []
    disk.fault = lambda operation, path: synced.append(path) if operation.startswith("sync") else None
    log = manager.open_log(TopicPartition("orders", 0), bytes(range(16)), LogConfig(), NOW_MS)
    append(log, b"a")
    steps.turn()
    assert not synced, "the loop has waited for the disk"
    assert log.ready_offset == 0
    steps.finish()
    assert log.ready_offset == 1
    assert {"/a", "/a/orders-0"} <= set(synced)
    synced.clear()
    manager.delete_log(TopicPartition("orders", 0), NOW_MS)
    steps.turn()
    assert not synced, "the loop has waited for the disk"
    steps.finish()
    assert synced == ["/a"]


def test_a_power_cut_leaves_a_new_log_with_its_id_or_without_anything_acknowledged() -> None:
    for seed in range(200):
        disk, steps, random = SimulatedDisk(), Steps(), Random(seed)
        manager = LogManager.open(
            disk, ("/a",), node_id=1, format_as=lambda: MetaProperties("cluster", 1), background=steps
        )
        config = LogConfig(flush_messages=1)
        log = manager.open_log(TopicPartition("orders", 0), bytes(range(16)), config, NOW_MS)
        append(log, b"a")
        for _ in range(random.randint(0, 6)):
            if random.random() < 0.5:
                steps.turn()
            elif steps.threads:
                steps.finish_thread()
        is_acknowledged = log.ready_offset == 1
        disk.crash(random)
        again = LogManager.open(disk, ("/a",), node_id=1)
        found = again.open_log(TopicPartition("orders", 0), bytes(range(16)), config, NOW_MS)
        assert not is_acknowledged or read_records(found) == [(0, b"a")], f"seed {seed}"
        assert not is_acknowledged or read_file(disk, "/a/orders-0/partition.metadata"), f"seed {seed}"
