"""Which segments retention deletes."""

import pytest
from logs import NOW_MS, append, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig


def log_of_ten(**settings: object) -> Log:
    """Ten segments of one record each, a second apart."""
    log = reopen(SimulatedDisk(), LogConfig(segment_bytes=100, retention_ms=-1))
    for n in range(10):
        append(log, b"%d" % n, timestamp=NOW_MS + 1000 * n, now_ms=NOW_MS + 1000 * n)
    log.configure(LogConfig(segment_bytes=100, **{"retention_ms": -1, **settings}))  # type: ignore[arg-type]
    return log


def test_segments_go_when_their_newest_record_is_too_old() -> None:
    log = log_of_ten(retention_ms=5000)
    log.advance_high_watermark(10)
    log.retire_segments(NOW_MS + 9000)
    assert (log.log_start_offset, len(log.segments)) == (4, 6)


def test_nothing_goes_above_the_high_watermark() -> None:
    log = log_of_ten(retention_ms=0)
    log.advance_high_watermark(3)
    log.retire_segments(NOW_MS + 99_000)
    assert log.log_start_offset == 3


def test_everything_may_go_and_offsets_go_on() -> None:
    log = log_of_ten(retention_ms=0)
    log.advance_high_watermark(10)
    log.retire_segments(NOW_MS + 99_000)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (10, 10, 0)
    assert append(log, b"next") == 10


def test_segments_go_while_the_rest_is_large_enough() -> None:
    log = log_of_ten()
    size = log.size_bytes // 10
    log.configure(LogConfig(segment_bytes=100, retention_ms=-1, retention_bytes=3 * size + 1))
    log.advance_high_watermark(10)
    log.retire_segments(NOW_MS)
    assert len(log.segments) == 4


@pytest.mark.parametrize("settings", [{}, {"cleanup_policy": ("compact",), "retention_ms": 0, "retention_bytes": 0}])
def test_nothing_goes_without_a_reason(settings: dict[str, object]) -> None:
    log = log_of_ten(**settings)
    log.advance_high_watermark(10)
    log.retire_segments(NOW_MS + 10**12)
    assert log.log_start_offset == 0


def test_an_empty_log_stays_as_it_is() -> None:
    log = reopen(SimulatedDisk(), LogConfig(retention_ms=0, retention_bytes=0))
    log.advance_high_watermark(0)
    log.retire_segments(NOW_MS + 10**9)
    assert (log.log_start_offset, len(log.segments)) == (0, 1)


def test_a_full_disk_does_not_keep_old_segments_from_going() -> None:
    log = log_of_ten(retention_ms=5000)
    disk = log.log_directory.disk
    assert isinstance(disk, SimulatedDisk)
    disk.capacity_bytes = 0
    log.advance_high_watermark(10)
    assert log.retire_segments(NOW_MS + 9000) == 4
    assert (log.log_start_offset, log.epochs.entries) == (4, [(0, 4)])
    disk.capacity_bytes = None
    again = reopen(disk, LogConfig(segment_bytes=100))
    assert (again.log_start_offset, again.epochs.entries) == (4, [(0, 4)])


def test_a_reader_keeps_what_retention_removed() -> None:
    log = log_of_ten(retention_ms=0)
    disk = log.log_directory.disk
    doomed: list[str] = []
    log.on_files_deleted = doomed.extend
    slices = log.read(0, 1 << 20, 10)
    before = [bytes(piece.read()) for piece in slices]
    log.advance_high_watermark(10)
    log.retire_segments(NOW_MS + 99_000)
    for path in doomed:
        disk.remove(path)
    assert len(doomed) >= 30
    assert [bytes(piece.read()) for piece in slices] == before
