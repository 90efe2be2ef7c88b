"""The interface between storage and the operating system.

`Disk` and `File` are everything that storage needs of a file system. A simulated disk, which keeps synced and unsynced
bytes apart, can replace them in tests. Paths are plain strings. Failures raise the system's OSError.

A `File` stays usable as long as somebody holds a reference: deleting or renaming its path does not disturb a reader,
and the descriptor is closed with the last reference. `sync` and the reads may be called from other threads.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from sskafka.model.buffers import Buffer
from sskafka.runtime.descriptors import SpareDescriptors

_FILE_MODE = 0o640
_DIRECTORY_MODE = 0o750
_SECRET_DIRECTORY_MODE = 0o700
_NOWAIT_FLAG = getattr(os, "RWF_NOWAIT", None)  # Linux only


T = TypeVar("T")

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE


def reserve_blocks(fd: int, size: int) -> None:
    """Call fallocate(2) with FALLOC_FL_KEEP_SIZE, which Python does not offer. Linux only."""
    import ctypes  # noqa: PLC0415  (few brokers preallocate)

    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None:
        return
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if fallocate(fd, _KEEP_SIZE, 0, size) == 0:
        return
    code = ctypes.get_errno()
    if code not in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}:
        raise OSError(code, os.strerror(code))


class DiskEntry(NamedTuple):
    name: str
    size_bytes: int
    is_directory: bool
    is_broken_link: bool = False


class DiskUsage(NamedTuple):
    total_bytes: int
    usable_bytes: int


class Lock(Protocol):
    def release(self) -> None: ...


class File(Protocol):
    def write_at(self, data: Buffer, position: int) -> None:
        """Write all of `data` or raise OSError; part of the data may have been written then."""
        ...

    def read_at(self, size: int, position: int) -> Buffer:
        """Return `size` bytes, fewer only at the end of the file. May block on the disk."""
        ...

    def read_cached_at(self, size: int, position: int) -> Buffer | None:
        """Like `read_at`, but return None if the read would block on the disk."""
        ...

    def read_once(self, size: int, position: int) -> Buffer:
        """Like `read_at`, but leave nothing in the page cache that was not there before."""
        ...

    def sync(self) -> None:
        """Return when everything written so far would survive a power failure."""
        ...

    def truncate(self, size: int) -> None: ...

    def preallocate(self, size: int) -> None:
        """Reserve space for `size` bytes without changing the file's size; `truncate` releases the unused space.

        Do nothing if the file system does not support that. Raise OSError if the space is not available."""
        ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File: ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def entries(self, path: str) -> list[DiskEntry]: ...

    def make_directory(self, path: str, *, is_secret: bool = False) -> None:
        """Create the directory and its parents. An existing directory is fine.

        Only the owner may look into a directory that has secrets; else the group may read."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename atomically and replace an existing target. Durable after `sync_directory` of the parent."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def usage(self, path: str) -> DiskUsage: ...

    def lock(self, path: str) -> Lock:
        """Take an exclusive lock for this process. Raise BlockingIOError if another process holds the lock."""
        ...


class OsFile:
    __slots__ = ("_can_skip_waiting", "_fd")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._can_skip_waiting = _NOWAIT_FLAG is not None

    def write_at(self, data: Buffer, position: int) -> None:
        written = os.pwrite(self._fd, data, position)
        if written != len(data):
            self._write_rest(memoryview(data)[written:], position + written)

    def _write_rest(self, data: memoryview, position: int) -> None:
        while data:
            written = os.pwrite(self._fd, data, position)
            data = data[written:]
            position += written

    def read_at(self, size: int, position: int) -> Buffer:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        return data + bytes(self.read_at(size - len(data), position + len(data)))

    def read_cached_at(self, size: int, position: int) -> Buffer | None:
        if not self._can_skip_waiting:
            return self.read_at(size, position)
        assert _NOWAIT_FLAG is not None
        data = bytearray(size)
        try:
            count = os.preadv(self._fd, [data], position, _NOWAIT_FLAG)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}:
                raise
            self._can_skip_waiting = False
            return self.read_at(size, position)
        if count == size:
            return data
        return None if position + count < self.size() else data[:count]

    def read_once(self, size: int, position: int) -> Buffer:
        data = self.read_cached_at(size, position)
        if data is None or not self._can_skip_waiting:
            data = self.read_at(size, position)
            os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_DONTNEED)
        return data

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def preallocate(self, size: int) -> None:
        reserve_blocks(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class OsLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _described(entry: "os.DirEntry[str]") -> DiskEntry:
    try:
        return DiskEntry(entry.name, entry.stat().st_size, entry.is_dir())
    except OSError:
        if not entry.is_symlink():
            raise
        return DiskEntry(entry.name, 0, False, is_broken_link=True)


class OsDisk:
    def __init__(self, spares: SpareDescriptors | None = None) -> None:
        """`spares`: descriptors for work on existing files when the process has no others left."""
        self._spares = spares

    def _with_spares(self, opening: Callable[[], T]) -> T:
        return opening() if self._spares is None else self._spares.attempt(opening)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        if create:
            return OsFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, _FILE_MODE))
        return OsFile(self._with_spares(lambda: os.open(path, os.O_RDWR | os.O_CLOEXEC, _FILE_MODE)))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def entries(self, path: str) -> list[DiskEntry]:
        with self._with_spares(lambda: os.scandir(path)) as found:
            return [_described(entry) for entry in found]

    def make_directory(self, path: str, *, is_secret: bool = False) -> None:
        os.makedirs(path, _SECRET_DIRECTORY_MODE if is_secret else _DIRECTORY_MODE, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        import shutil  # noqa: PLC0415  (slow to import, and a broker starts without it)

        shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        fd = self._with_spares(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def usage(self, path: str) -> DiskUsage:
        found = os.statvfs(path)
        return DiskUsage(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def lock(self, path: str) -> OsLock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # also excludes a second broker in this process
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # also excludes Apache Kafka
        except OSError as error:
            os.close(fd)
            if error.errno in {errno.EACCES, errno.EAGAIN}:
                raise BlockingIOError(error.errno, "locked by another process", path) from error
            raise
        return OsLock(fd)


class DirectorySync:
    """Makes a directory's sync available where files are synced."""

    __slots__ = ("_disk", "_path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def sync(self) -> None:
        self._disk.sync_directory(self._path)


def read_file(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return bytes(file.read_at(file.size(), 0))
    finally:
        file.close()


def replace_file(disk: Disk, path: str, data: Buffer, *, sync: bool = True) -> None:
    """Replace a file atomically: write a temporary file, sync it, rename it, and sync the directory.

    Without `sync` the replacement is atomic only for a crash of the process; a power failure may leave a torn file."""
    aside = path + ".tmp"
    file = disk.open(aside, create=True)
    try:
        file.truncate(0)
        file.write_at(data, 0)
        if sync:
            file.sync()
    finally:
        file.close()
    disk.rename(aside, path)
    if sync:
        disk.sync_directory(os.path.dirname(path))
