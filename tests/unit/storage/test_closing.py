"""Logs are closed in parallel, and an error in one of them does not prevent the others from being closed."""

import threading
import time
from pathlib import Path

import pytest
from logs import append, read_records, reopen

from sskafka.storage.broker_directory import close_logs
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import LogDirectoryError
from sskafka.storage.log import Log

LOGS = 40


class SlowDisk(OsDisk):
    """Syncs of directories take a while; how many run at once is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.bad_directory = ""
        self._running = 0
        self._lock = threading.Lock()
        self.most_at_once = 0

    def sync_directory(self, path: str) -> None:
        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        time.sleep(0.01)
        with self._lock:
            self._running -= 1
        if self.bad_directory and path.endswith(self.bad_directory):
            raise OSError(5, "input/output error")
        super().sync_directory(path)


def open_logs(disk: OsDisk, directory: Path) -> list[Log]:
    logs = [reopen(disk, None, str(directory / f"orders-{number}")) for number in range(LOGS)]
    for log in logs:
        append(log, b"value")
    return logs


def test_syncs_overlap(tmp_path: Path) -> None:
    disk = SlowDisk()
    logs = open_logs(disk, tmp_path)
    disk.most_at_once = 0
    close_logs(logs, str(tmp_path))
    assert disk.most_at_once > 4
    assert all(log.is_closed for log in logs)


def test_everything_is_there_after_a_clean_stop(tmp_path: Path) -> None:
    close_logs(open_logs(OsDisk(), tmp_path), str(tmp_path))
    for number in range(LOGS):
        log = reopen(OsDisk(), None, str(tmp_path / f"orders-{number}"), was_clean_stop=True, recovery_point=1)
        assert read_records(log) == [(0, b"value")]


def test_an_error_is_raised_after_the_others_are_closed(tmp_path: Path) -> None:
    disk = SlowDisk()
    logs = open_logs(disk, tmp_path)
    disk.bad_directory = "orders-7"
    with pytest.raises(LogDirectoryError):
        close_logs(logs, str(tmp_path))
    assert sum(log.is_closed for log in logs) == LOGS - 1


def test_progress_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "sskafka.storage.broker_directory")
    close_logs(open_logs(OsDisk(), tmp_path), str(tmp_path))
    assert f"closed {LOGS} of {LOGS} logs" in caplog.text
