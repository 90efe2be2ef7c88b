"""How many descriptors connections may use, and the spare descriptors of the disk."""

import errno
import os

import pytest

from sskafka.runtime.descriptors import ConnectionDescriptors, SpareDescriptors
from sskafka.storage.disk import OsDisk


@pytest.fixture
def lowest_free() -> int:
    fd = os.dup(0)
    os.close(fd)
    return fd


def test_connections_have_three_quarters_of_the_limit() -> None:
    descriptors = ConnectionDescriptors(10_000)
    for _ in range(7_499):
        descriptors.took_one()
    assert descriptors.has_room(0)
    descriptors.took_one()
    assert not descriptors.has_room(0)
    descriptors.connection_closed()
    assert descriptors.has_room(0)


def test_connections_leave_the_last_descriptors_to_files(lowest_free: int) -> None:
    assert not ConnectionDescriptors(lowest_free + 16).has_room(0)
    assert ConnectionDescriptors(lowest_free + 17).has_room(0)


def test_a_lower_limit_of_connections() -> None:
    assert ConnectionDescriptors(10_000, connections_max=20).connections_max == 20


class Shortage:
    """Refuses the first `failures` attempts to open."""

    def __init__(self, failures: int, code: int = errno.EMFILE) -> None:
        self.failures = failures
        self.code = code

    def __call__(self) -> str:
        if self.failures:
            self.failures -= 1
            raise OSError(self.code, os.strerror(self.code))
        return "opened"


def test_a_spare_is_freed_for_a_second_attempt() -> None:
    spares = SpareDescriptors(2)
    assert spares.attempt(Shortage(1)) == "opened"
    with pytest.raises(OSError, match="Too many open files"):
        spares.attempt(Shortage(2))
    spares.close()


def test_other_errors_take_no_spare() -> None:
    spares = SpareDescriptors(1)
    with pytest.raises(PermissionError):
        spares.attempt(Shortage(1, errno.EACCES))
    spares.close()


def test_a_closed_reserve_opens_nothing() -> None:
    spares = SpareDescriptors(3)
    spares.close()
    before = len(os.listdir("/proc/self/fd"))
    assert spares.attempt(lambda: 1) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_new_files_take_no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spares are for work on files that exist: new logs would use them up."""
    spares = SpareDescriptors(1)
    disk = OsDisk(spares)
    real_open = os.open
    asked: list[str] = []

    def refuse_once(path: str, flags: int, mode: int = 0o777) -> int:
        asked.append(path)
        if len(asked) == 1:
            raise OSError(errno.EMFILE, "Too many open files", path)
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse_once)
    with pytest.raises(OSError, match="Too many open files"):
        disk.open("/nowhere/new", create=True)
    asked.clear()
    disk.open(os.devnull).close()
    assert asked == [os.devnull, os.devnull]
    monkeypatch.undo()
    spares.close()
