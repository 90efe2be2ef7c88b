"""Full and failing disks: no acknowledged record is lost, and no partial write is visible."""

import errno

import pytest
from logs import DIRECTORY, NOW_MS, append, read_records, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage import flusher, log_directory
from sskafka.storage.disk import DiskUsage
from sskafka.storage.errors import LogDirectoryError, StorageError, TemporaryStorageError
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth, Shortage


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def used(disk: SimulatedDisk) -> int:
    return sum(len(node.data) for node in disk.nodes.values())


def broken(operation: str, suffix: str = "", code: int = errno.EIO):  # type: ignore[no-untyped-def]
    def fault(asked: str, path: str) -> None:
        if asked == operation and path.endswith(suffix):
            raise OSError(code, "broken", path)

    return fault


@pytest.mark.parametrize("room", [0, 1, 30, 70])
def test_a_full_disk_refuses_and_goes_on_when_there_is_room(disk: SimulatedDisk, room: int) -> None:
    log = reopen(disk)
    append(log, b"kept")
    size = log.size_bytes
    disk.capacity_bytes = used(disk) + room
    for _ in range(2):
        with pytest.raises(StorageError, match="no room"):
            append(log, b"too much")
    assert (log.log_end_offset, log.size_bytes) == (1, size)
    assert disk.open(f"{DIRECTORY}/{0:020d}.log").size() == size, "nothing of it stays in the file"
    disk.capacity_bytes = None
    assert append(log, b"again") == 1
    assert read_records(log) == [(0, b"kept"), (1, b"again")]
    assert read_records(reopen(disk)) == [(0, b"kept"), (1, b"again")]


def test_a_full_disk_forgets_no_sequence(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    fields = {"producer_id": 1, "producer_epoch": 0}
    append(log, b"a", base_sequence=0, **fields)
    disk.capacity_bytes = used(disk)
    with pytest.raises(StorageError):
        append(log, b"b", base_sequence=1, **fields)
    disk.capacity_bytes = None
    assert append(log, b"b", base_sequence=1, **fields) == 1


def test_a_full_disk_at_the_roll_can_be_repeated(disk: SimulatedDisk) -> None:
    log = reopen(disk, LogConfig(segment_bytes=100))
    append(log, b"a")
    for spare in (0, 5, 12, 20, 40):
        disk.capacity_bytes = used(disk) + spare
        with pytest.raises(StorageError):
            append(log, b"b")
        assert log.log_end_offset == 1
    disk.capacity_bytes = None
    assert append(log, b"b") == 1
    assert read_records(log) == [(0, b"a"), (1, b"b")]
    assert read_records(reopen(disk, LogConfig(segment_bytes=100))) == [(0, b"a"), (1, b"b")]


def test_a_full_disk_at_a_new_epoch_changes_no_epoch(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", epoch=0)
    disk.capacity_bytes = used(disk)
    with pytest.raises(StorageError):
        append(log, b"b", epoch=1)
    assert log.epochs.latest_epoch == 0
    disk.capacity_bytes = None
    append(log, b"b", epoch=1)
    assert log.epochs.entries == [(0, 0), (1, 1)]


def test_a_broken_write_takes_the_directory_offline(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a")
    disk.fault = broken("write", ".log")
    with pytest.raises(LogDirectoryError, match="offline"):
        append(log, b"b")
    disk.fault = None
    with pytest.raises(LogDirectoryError, match="offline"):
        append(log, b"b")
    assert read_records(log) == [(0, b"a")], "what is there can still be read"


def test_a_write_that_cannot_be_undone_takes_the_directory_offline(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a")

    def fault(operation: str, path: str) -> None:
        if operation in {"write", "truncate"} and path.endswith(".log"):
            raise OSError(errno.ENOSPC, "full", path)

    disk.fault = fault
    with pytest.raises(LogDirectoryError):
        append(log, b"b")


def test_a_failed_sync_is_never_tried_again(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a")
    disk.fault = broken("sync")
    with pytest.raises(LogDirectoryError):
        log.flush()
    disk.fault = None
    syncs = len(disk.syncs)
    for attempt in (log.flush, log.close, lambda: append(log, b"b")):
        with pytest.raises(LogDirectoryError):
            attempt()
    assert len(disk.syncs) == syncs
    assert log.recovery_point == 0


def test_the_owner_hears_of_a_failed_directory_once(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    heard: list[str] = []
    log.log_directory.on_failure = lambda directory: heard.append(directory.path)
    disk.fault = broken("sync")
    for _ in range(3):
        with pytest.raises(LogDirectoryError):
            log.flush()
    assert heard == ["/data"]


def test_an_unreadable_log_is_an_error_at_start(disk: SimulatedDisk) -> None:
    append(reopen(disk), b"a")
    disk.fault = broken("read", ".log")
    with pytest.raises(LogDirectoryError, match="broken"):
        reopen(disk)


def test_a_truncated_slice_says_so(disk: SimulatedDisk) -> None:
    log = reopen(disk)
    append(log, b"a", now_ms=NOW_MS)
    slices = log.read(0, 100, 1)
    log.truncate_to(0)
    with pytest.raises(StorageError, match="truncated"):
        slices[0].read()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR])
def test_a_lack_of_descriptors_or_memory_is_no_broken_disk(disk: SimulatedDisk, code: int) -> None:
    log = reopen(disk, LogConfig(segment_bytes=100))
    append(log, b"a")
    disk.fault = broken("open", code=code)
    with pytest.raises(TemporaryStorageError, match="for now"):
        append(log, b"needs a new segment")
    log.segments.active.close()
    with pytest.raises(TemporaryStorageError, match="cannot read"):
        log.read(0, 1000, 1)
    assert log.log_directory.failure is None
    disk.fault = None
    assert append(log, b"b") == 1
    assert read_records(log) == [(0, b"a"), (1, b"b")]


def test_a_directory_that_cannot_be_opened_for_its_sync_is_synced_later(
    disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher, "sleep", lambda _: None)
    left = [3]

    def short(operation: str, path: str) -> None:
        if operation == "sync_directory" and left[0]:
            left[0] -= 1
            raise OSError(errno.EMFILE, "Too many open files", path)

    log = reopen(disk)
    append(log, b"a")
    disk.fault = short
    log.flush()
    assert left == [0]
    assert log.recovery_point == 1
    assert log.log_directory.failure is None


class TestShortage:
    def test_it_is_logged_when_it_begins_and_when_it_is_over(self, caplog: pytest.LogCaptureFixture) -> None:
        now_s = [0.0]
        shortage = Shortage("/data", "is full", "logdirectoryfull", lambda: now_s[0])
        for now_s[0] in (10.0, 11.0, 12.0):
            shortage.note(OSError(errno.ENOSPC, "No space left on device"))
        now_s[0] = 14.0
        shortage.maybe_end(lambda: True)
        assert shortage.is_present, "the last failure is recent"
        now_s[0] = 16.0
        shortage.maybe_end(lambda: False)
        assert shortage.is_present
        shortage.maybe_end(lambda: True)
        assert [record.message.split(":")[0] for record in caplog.records] == [
            "log directory /data is full",
            "log directory /data is full no longer",
        ]
        assert "3 operations failed in 6 s" in caplog.messages[1]

    def test_it_is_in_the_metrics(self) -> None:
        shortage = Shortage("/data", "is full", "logdirectoryfull", lambda: 0.0)
        shortage.note(OSError(errno.ENOSPC, "No space left on device"))
        assert {sample.name: sample.value for sample in shortage.samples()} == {
            "kafka_log_logmanager_logdirectoryfull": 1,
            "kafka_log_logmanager_logdirectoryfull_total": 1,
        }

    def test_it_lasts_while_the_disk_does_not_tell_how_full_it_is(
        self, disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def usage(path: str) -> DiskUsage:
            raise OSError(errno.EIO, "Input/output error", path)

        monkeypatch.setattr(disk, "usage", usage)
        monkeypatch.setattr(log_directory, "QUIET_S", 0.0)
        health = LogDirHealth(disk, "/data")
        health.note_shortage(OSError(errno.ENOSPC, "No space left on device"))
        health.maybe_end_shortages()
        assert health.no_room.is_present
