"""The real disk implements the protocol `Disk`."""

import errno
import os
from pathlib import Path

import pytest
from logs import append, read_records, reopen

from sskafka.storage.disk import OsDisk, OsFile, read_file, replace_file
from sskafka.storage.file_slice import FileSlice
from sskafka.storage.log_config import LogConfig
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.segment import Segment


@pytest.fixture
def file(tmp_path: Path) -> OsFile:
    return OsDisk().open(str(tmp_path / "file"), create=True)


def test_a_log_lives_on_it(tmp_path: Path) -> None:
    directory, config = str(tmp_path / "orders-0"), LogConfig(segment_bytes=300)
    log = reopen(OsDisk(), config, directory)
    for n in range(20):
        append(log, b"%d" % n)
    log.increment_log_start_offset(7)
    log.close()
    log = reopen(OsDisk(), config, directory, log_start_offset=7, was_clean_stop=True)
    append(log, b"20")
    log = reopen(OsDisk(), config, directory, log_start_offset=7, recovery_point=20)
    assert read_records(log) == [(n, b"%d" % n) for n in range(7, 21)]
    log.truncate_to(9)
    assert read_records(reopen(OsDisk(), config, directory, log_start_offset=7)) == [(7, b"7"), (8, b"8")]


def test_short_writes_are_continued(file: OsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: whole(fd, bytes(data)[:3], position))
    file.write_at(b"0123456789", 2)
    assert file.read_at(100, 0) == b"\0\x000123456789"


def test_short_reads_are_continued(file: OsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_at(b"0123456789", 0)
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, position: whole(fd, min(size, 4), position))
    assert file.read_at(9, 1) == b"123456789"
    assert file.read_at(100, 8) == b"89"


def test_cached_bytes_are_read_at_once(file: OsFile) -> None:
    file.write_at(b"0123456789", 0)
    found = FileSlice(file, 2, 5)
    assert found.read_now() == b"23456"
    assert found.part(1, 2).read_now() == b"34"
    assert found.part(3, 99).length == 2


@pytest.mark.parametrize(("code", "expected"), [(errno.EAGAIN, None), (errno.EOPNOTSUPP, b"0123")])
def test_reading_at_once_may_have_to_wait_or_be_unknown(
    file: OsFile, monkeypatch: pytest.MonkeyPatch, code: int, expected: bytes | None
) -> None:
    file.write_at(b"0123456789", 0)

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "preadv", refuse)
    assert file.read_cached_at(4, 0) == expected
    assert file.read_at(4, 0) == b"0123"


def test_partly_cached_bytes_are_not_given_as_all(file: OsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_at(b"0123456789", 0)
    monkeypatch.setattr(os, "preadv", lambda *_: 2)
    assert file.read_cached_at(4, 0) is None


def test_an_open_file_outlives_its_name(tmp_path: Path) -> None:
    disk = OsDisk()
    path = str(tmp_path / "file")
    file = disk.open(path, create=True)
    file.write_at(b"here", 0)
    disk.remove(path)
    assert file.read_at(4, 0) == b"here"
    before = len(os.listdir("/proc/self/fd"))
    del file
    assert len(os.listdir("/proc/self/fd")) == before - 1


def test_a_replaced_file_is_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    for content in (b"a longer first version", b"short"):
        replace_file(OsDisk(), path, content)
        assert read_file(OsDisk(), path) == content
    assert os.listdir(tmp_path) == ["file"]


def test_usage_and_entries(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"123")
    usage = OsDisk().usage(str(tmp_path))
    assert 0 < usage.usable_bytes <= usage.total_bytes
    entries = {entry.name: entry for entry in OsDisk().entries(str(tmp_path))}
    assert entries["f"].size_bytes == 3
    assert entries["d"].is_directory


def test_deleted_segments_are_not_held_open(tmp_path: Path) -> None:
    """Otherwise their room would not come back."""
    log = reopen(OsDisk(), LogConfig(segment_bytes=100), directory=str(tmp_path / "orders-0"))
    for _ in range(5):
        append(log, bytes(60))
    log.increment_log_start_offset(4)
    held = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    assert [path.name for path in held if path.is_relative_to(tmp_path)] == ["00000000000000000004.log"]


def test_room_for_a_segment_is_reserved_and_given_back(tmp_path: Path) -> None:
    config = LogConfig(preallocate=True, segment_bytes=8 << 20)
    segment = Segment.create(OsDisk(), str(tmp_path), 0, config, OpenFiles(), 0)
    status = os.stat(segment.log_path)
    if status.st_blocks == 0:
        pytest.skip("the file system cannot reserve room")
    assert (status.st_size, status.st_blocks * 512) == (0, 8 << 20)
    segment.file.write_at(b"x" * 100, 0)
    segment.size_bytes = 100
    segment.seal()
    status = os.stat(segment.log_path)
    assert status.st_size == 100
    assert status.st_blocks * 512 <= 8192
