"""Group commit: which append waits for which sync, and when its batches are ready."""

import errno
import gc
import threading
from collections.abc import Callable, Iterable
from random import Random

import pytest
from background_steps import Steps
from logs import NOW_MS, TP, append, batch, reopen
from simulated_disk import SimulatedDisk

from sskafka.runtime.sync_threads import FEW_LOGS, SYNC_THREADS, sync_side_by_side
from sskafka.storage.flusher import Flusher, FlushPlan
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.recovery.opening import open_log

TIMEOUT_S = 30.0


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def directory(disk: SimulatedDisk) -> LogDirHealth:
    return LogDirHealth(disk, "/data")


@pytest.fixture
def flusher(directory: LogDirHealth, steps: Steps) -> Flusher:
    return Flusher(directory, steps)


def log_in(directory: LogDirHealth, flusher: Flusher, name: str = "orders-0", **settings: int) -> Log:
    config = LogConfig(**{"flush_messages": 1, **settings})  # type: ignore[arg-type]
    log = open_log(directory, f"/data/{name}", TP, config, now_ms=NOW_MS, flusher=flusher)
    log.epochs.assign(0, 0)  # so that no append waits for it; see test_sync_gate.py
    return log


def test_nothing_is_ready_before_its_sync(directory: LogDirHealth, flusher: Flusher, steps: Steps) -> None:
    log = log_in(directory, flusher)
    ready: list[int] = []
    log.on_ready = lambda: ready.append(log.ready_offset)
    append(log, b"a", b"b")
    assert (log.log_end_offset, log.ready_offset) == (2, 0)
    steps.turn()
    assert ready == [2]
    assert log.recovery_point == 2


def test_one_append_is_synced_without_a_thread(directory: LogDirHealth, flusher: Flusher, steps: Steps) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")
    steps.turn()
    assert not steps.threads
    assert log.ready_offset == 1


def test_several_appends_share_one_sync_in_a_thread(
    disk: SimulatedDisk, directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    logs = [log_in(directory, flusher, f"t-{n}") for n in range(2)]
    for log in [*logs, logs[0]]:
        append(log, b"a")
    disk.syncs.clear()
    steps.turn()
    assert [log.ready_offset for log in logs] == [0, 0]
    steps.finish_thread()
    assert [log.ready_offset for log in logs] == [2, 1]
    assert len(disk.syncs) == 2


class MetLog:
    """A log whose sync waits until as many syncs as there are threads have begun."""

    def __init__(self, together: threading.Barrier) -> None:
        self._together = together
        self.is_flushed = False

    def sync(self) -> None:
        self._together.wait(TIMEOUT_S)

    def plan_flush(self) -> FlushPlan:
        return FlushPlan([self], 0, 0)

    def complete_flush(self, plan: FlushPlan) -> None:
        self.is_flushed = True


class ThreadedSteps(Steps):
    def side_by_side(self, syncs: Iterable[Callable[[], None]]) -> None:
        sync_side_by_side(syncs)


def test_many_logs_are_synced_side_by_side(directory: LogDirHealth) -> None:
    """The syncs of many logs share the commits of the file system only if they wait together."""
    steps = ThreadedSteps()
    flusher = Flusher(directory, steps)
    together = threading.Barrier(SYNC_THREADS)
    logs = [MetLog(together) for _ in range(2 * SYNC_THREADS)]
    for log in logs:
        flusher.request(log)
    steps.turn()
    steps.finish_thread()
    assert all(log.is_flushed for log in logs)


def test_the_first_failure_among_many_takes_the_directory_offline(
    disk: SimulatedDisk, directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    logs = [log_in(directory, flusher, f"t-{n}") for n in range(FEW_LOGS + 1)]
    for log in logs:
        append(log, b"a")

    def broken(operation: str, path: str) -> None:
        if operation == "sync" and "t-3/" in path:
            raise OSError(errno.EIO, "broken", path)

    disk.fault = broken
    steps.turn()
    steps.finish_thread()
    assert directory.failure is not None
    assert {log.ready_offset for log in logs} == {0}, "nothing is acknowledged from an offline directory"


def test_who_comes_during_a_sync_waits_for_the_next(directory: LogDirHealth, flusher: Flusher, steps: Steps) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")
    append(log, b"b")
    steps.turn()
    append(log, b"c")
    append(log, b"d")
    steps.finish_thread()
    assert log.ready_offset == 2
    steps.finish_thread()
    assert log.ready_offset == 4
    assert not steps.threads
    assert not steps.turns


def test_what_was_ready_stays_ready(directory: LogDirHealth, flusher: Flusher, steps: Steps) -> None:
    """With flush.messages=3 the third record waits for the sync, the first two did not."""
    log = log_in(directory, flusher, flush_messages=3)
    append(log, b"a")
    append(log, b"b")
    assert log.ready_offset == 2
    append(log, b"c")
    assert log.ready_offset == 2
    append(log, b"d")
    assert log.ready_offset == 2
    steps.turn()
    steps.finish_thread()
    assert log.ready_offset == 4


def test_without_flush_messages_everything_is_ready_at_once(directory: LogDirHealth, flusher: Flusher) -> None:
    log = log_in(directory, flusher, flush_messages=2**63 - 1)
    append(log, b"a")
    assert log.ready_offset == 1
    assert log.recovery_point == 0


def test_a_failed_sync_readies_nothing(
    disk: SimulatedDisk, directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")
    append(log, b"b")
    steps.turn()

    def fault(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "broken", path)

    disk.fault = fault
    steps.finish_thread()
    disk.fault = None
    assert log.ready_offset == 0
    assert directory.failure is not None
    assert not steps.threads


def test_a_failed_sync_on_the_loop_readies_nothing(
    disk: SimulatedDisk, directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")

    def fault(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "broken", path)

    disk.fault = fault
    steps.turn()
    assert log.ready_offset == 0
    assert directory.failure is not None


def test_a_truncation_during_the_sync_is_not_taken_for_flushed(
    directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")
    append(log, b"b")
    steps.turn()
    log.truncate_to(0)
    log.append_as_follower(batch(b"x", b"y", b"z"))
    log.append_as_follower(batch(b"z", base_offset=3))
    steps.finish_thread()
    assert log.recovery_point == 0
    assert log.ready_offset == 0
    steps.finish_thread()
    assert log.ready_offset == 4


def test_a_flush_that_is_due_survives_a_truncation(directory: LogDirHealth, flusher: Flusher, steps: Steps) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")
    append(log, b"b")
    steps.turn()
    log.truncate_to(1)
    steps.finish()
    assert (log.recovery_point, log.ready_offset) == (1, 1)


def test_a_full_segment_is_synced_in_a_thread(
    disk: SimulatedDisk, directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    log = log_in(directory, flusher, flush_messages=2**63 - 1, segment_bytes=100)
    append(log, b"a")
    append(log, b"b")
    disk.syncs.clear()
    steps.turn()
    steps.finish_thread()
    assert {path.rpartition(".")[2] for path in disk.syncs if f"{0:020d}" in path} == {"log", "index", "timeindex"}
    assert log.recovery_point == 2


def test_a_closed_log_is_forgotten(directory: LogDirHealth, flusher: Flusher, steps: Steps) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")
    log.close()
    steps.turn()
    assert not steps.threads


def test_deleted_logs_are_not_kept_in_memory(directory: LogDirHealth, flusher: Flusher) -> None:
    name = "deleted-0"
    log_in(directory, flusher, name).abandon()
    gc.collect()
    assert not [log for log in gc.get_objects() if isinstance(log, Log) and log.directory.endswith(name)]


def test_without_a_background_an_append_is_on_disk_when_it_returns(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(flush_messages=1))
    append(log, b"a")
    assert (log.ready_offset, log.recovery_point) == (1, 1)


def test_a_log_deleted_during_its_sync_does_no_harm(
    disk: SimulatedDisk, directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    log = log_in(directory, flusher)
    append(log, b"a")
    append(log, b"b")
    steps.turn()
    append(log, b"c")
    log.abandon()
    disk.remove_tree("/data/orders-0")
    steps.finish_thread()
    steps.turn()
    assert not steps.threads
    assert directory.failure is None


def test_a_segment_that_filled_up_during_the_sync_is_synced_again(
    disk: SimulatedDisk, directory: LogDirHealth, flusher: Flusher, steps: Steps
) -> None:
    """Records came to it after the sync had begun; only the next flush covers them."""
    log = log_in(directory, flusher, segment_bytes=220)
    append(log, b"a")
    append(log, b"b")
    steps.turn()
    work, done = steps.threads.pop()
    work()
    append(log, b"c")
    append(log, b"d")  # in a new segment
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    disk.syncs.clear()
    done(None)
    assert log.ready_offset == 2
    steps.finish_thread()
    assert log.ready_offset == 4
    assert any(path.endswith(f"{0:020d}.log") for path in disk.syncs)
    disk.crash(Random(1))
    assert reopen(disk, recovery_point=4).log_end_offset == 4


def test_the_logs_of_one_round_are_few_enough_for_a_turn(
    directory: LogDirHealth, flusher: Flusher, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To plan and to complete the flushes of 10,000 logs once took 100 ms each."""
    monkeypatch.setattr("sskafka.storage.flusher.LOGS_PER_ROUND", 2)
    logs = [log_in(directory, flusher, f"orders-{number}") for number in range(5)]
    steps.finish()
    for log in logs:
        append(log, b"a")
    steps.turn()
    ready = [sum(log.ready_offset for log in logs)]
    while steps.threads or steps.turns:
        steps.finish_thread() if steps.threads else steps.turn()
        ready.append(sum(log.ready_offset for log in logs))
    assert ready in ([0, 2, 5], [0, 2, 4, 5])
