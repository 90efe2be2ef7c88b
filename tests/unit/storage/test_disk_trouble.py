"""A disk that is full or breaks: nothing acknowledged is lost, nothing half-written is seen."""

import errno

import pytest
from logs import DIRECTORY, NOW_MS, append, read_records, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.errors import LogDirectoryError, StorageError
from sskafka.storage.log_config import LogConfig


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
