"""Recovery after an unclean shutdown, in threads of each log directory."""

import errno
import logging
import shutil
import threading
from pathlib import Path

import pytest
from logs import NOW_MS, append, read_records

from sskafka.model.ids import TopicPartition
from sskafka.runtime.sync_threads import SYNC_THREADS
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import LogDirectoryError
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager, LogToRecover
from sskafka.storage.meta_properties import MetaProperties
from sskafka.storage.recovery.pool import PROGRESS_LINES_MAX

WAIT_SECONDS_MAX = 30.0
TOPIC_ID = bytes(range(16))
CONFIG = LogConfig()


class WatchedDisk(OsDisk):
    """Counts the threads that verify a log, or sync one, at the same time; each waits for `together` of them."""

    def __init__(self, together: int = 1, broken: str = "", watched: str = "sskafka-recovery") -> None:
        super().__init__()
        self._barrier = threading.Barrier(together)
        self._lock = threading.Lock()
        self._broken = broken
        self._watched = watched
        self._inside = 0
        self.inside_max = 0
        self.seen: list[str] = []

    def make_directory(self, path: str, *, is_secret: bool = False) -> None:
        """The first step of a recovery."""
        self._watch(path)
        super().make_directory(path, is_secret=is_secret)

    def sync_directory(self, path: str) -> None:
        """The last step of a recovery."""
        if self._broken and path.startswith(self._broken) and _thread_name() != "MainThread":
            raise OSError(errno.EIO, "broken", path)
        self._watch(path)
        super().sync_directory(path)

    def _watch(self, path: str) -> None:
        if not _thread_name().startswith(self._watched):
            return
        with self._lock:
            self.seen.append(path)
            self._inside += 1
            self.inside_max = max(self.inside_max, self._inside)
        try:
            self._barrier.wait(WAIT_SECONDS_MAX)
        finally:
            with self._lock:
                self._inside -= 1


def _thread_name() -> str:
    return threading.current_thread().name


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def start(disk: OsDisk, *paths: Path) -> LogManager:
    return LogManager.open(
        disk, [str(path) for path in paths], node_id=1, format_as=lambda: MetaProperties("cluster", 1)
    )


def fill(count: int, *paths: Path) -> None:
    """Leave logs behind as a crash does; every third has a damaged end."""
    manager = start(OsDisk(), *paths)
    for number in range(count):
        log = manager.open_log(partition(number), TOPIC_ID, CONFIG, NOW_MS)
        for value in range(20):
            append(log, b"%d of %d" % (value, number), producer_id=number, producer_epoch=0, base_sequence=value)
    manager.release()
    for number in range(0, count, 3):
        (file,) = (
            path / f"orders-{number}" / f"{0:020d}.log" for path in paths if (path / f"orders-{number}").exists()
        )
        file.write_bytes(file.read_bytes()[:-7])


def recover(manager: LogManager, count: int, threads: int) -> None:
    """Returns when all logs are recovered, and not yet opened."""
    done = threading.Event()
    wanted = [LogToRecover(partition(number), TOPIC_ID, CONFIG) for number in range(count)]
    assert all(manager.needs_recovery(log.topic_partition) for log in wanted)
    manager.recover_in_threads(wanted, NOW_MS, threads, done.set)
    assert done.wait(WAIT_SECONDS_MAX)
    assert not any(manager.needs_recovery(log.topic_partition) for log in wanted)


def opened(manager: LogManager, count: int) -> dict[int, list[tuple[int, bytes]]]:
    logs = (manager.open_log(partition(number), TOPIC_ID, CONFIG, NOW_MS) for number in range(count))
    return {number: read_records(log) for number, log in enumerate(logs)}


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_as_many_logs_as_threads_are_recovered_at_the_same_time_and_no_more(tmp_path: Path, threads: int) -> None:
    fill(12, tmp_path)
    disk = WatchedDisk(together=threads)  # 12 logs pass the barrier only if `threads` of them come together
    manager = start(disk, tmp_path)
    recover(manager, 12, threads)
    assert disk.inside_max == threads
    assert len(disk.seen) == 12
    manager.release()


def test_logs_are_synced_side_by_side_however_few_threads_verify_them(tmp_path: Path) -> None:
    fill(SYNC_THREADS, tmp_path)
    disk = WatchedDisk(together=SYNC_THREADS, watched="sskafka-sync")  # nobody passes before all have come
    manager = start(disk, tmp_path)
    recover(manager, SYNC_THREADS, threads=1)
    assert disk.inside_max == SYNC_THREADS
    manager.release()


def test_every_directory_has_threads_of_its_own(tmp_path: Path) -> None:
    paths = tmp_path / "a", tmp_path / "b"
    fill(8, *paths)
    disk = WatchedDisk(together=4)
    manager = start(disk, *paths)
    recover(manager, 8, threads=2)
    assert disk.inside_max == 4
    manager.release()


def test_the_outcome_is_that_of_recovery_one_by_one(tmp_path: Path) -> None:
    serial, parallel = tmp_path / "serial", tmp_path / "parallel"
    fill(30, serial)
    shutil.copytree(serial, parallel)
    one_by_one = start(OsDisk(), serial)
    expected = opened(one_by_one, 30)
    in_threads = start(OsDisk(), parallel)
    recover(in_threads, 30, threads=4)
    assert opened(in_threads, 30) == expected
    assert [len(records) for records in expected.values()] == [19 if number % 3 == 0 else 20 for number in range(30)]
    assert files(parallel) == files(serial)
    assert str(in_threads.recovery) == str(one_by_one.recovery)
    for manager in (one_by_one, in_threads):
        manager.close()
    assert files(parallel) == files(serial)


def test_a_directory_that_fails_goes_offline_alone(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    fill(10, good, bad)
    disk = WatchedDisk(broken=str(bad))
    manager = start(disk, good, bad)
    failures: list[str] = []
    for directory in manager.directories:
        directory.health.on_failure = lambda health: failures.append(health.path)
    done = threading.Event()
    wanted = [LogToRecover(partition(number), TOPIC_ID, CONFIG) for number in range(10)]
    manager.recover_in_threads(wanted, NOW_MS, 1, done.set)
    assert done.wait(WAIT_SECONDS_MAX)
    assert failures == [str(bad)]
    in_bad = {number for number in range(10) if (bad / f"orders-{number}").exists()}
    assert 0 < len(in_bad) < 10
    for number in range(10):
        if number in in_bad:
            with pytest.raises(LogDirectoryError, match="is offline"):
                manager.open_log(partition(number), TOPIC_ID, CONFIG, NOW_MS)
        else:
            assert manager.open_log(partition(number), TOPIC_ID, CONFIG, NOW_MS).log_end_offset >= 19
    manager.release()


def test_progress_is_told_in_few_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(90, tmp_path)
    manager = start(OsDisk(), tmp_path)
    with caplog.at_level(logging.INFO, "sskafka.storage.recovery.pool"):
        recover(manager, 90, threads=3)
    lines = [record.getMessage() for record in caplog.records if "recovered" in record.getMessage()]
    assert f"recovered 90 of 90 logs in {tmp_path}" in lines
    assert 5 < len(lines) <= 2 * PROGRESS_LINES_MAX
    manager.release()


def test_a_stop_in_the_middle_begins_no_further_log(tmp_path: Path) -> None:
    fill(9, tmp_path)
    disk = WatchedDisk(together=2)
    manager = start(disk, tmp_path)
    wanted = [LogToRecover(partition(number), TOPIC_ID, CONFIG) for number in range(9)]
    manager.recover_in_threads(wanted, NOW_MS, 1, lambda: None)  # one thread, which waits at the barrier
    stop = threading.Timer(0, manager.release)
    stop.start()
    disk._barrier.wait(WAIT_SECONDS_MAX)
    disk._barrier.abort()
    stop.join(WAIT_SECONDS_MAX)
    assert not stop.is_alive()
    assert len(disk.seen) < 9


def test_logs_of_a_clean_stop_need_no_recovery(tmp_path: Path) -> None:
    fill(1, tmp_path)
    manager = start(OsDisk(), tmp_path)
    opened(manager, 1)
    manager.close()
    assert not start(OsDisk(), tmp_path).needs_recovery(partition(0))
