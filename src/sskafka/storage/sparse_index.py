"""A file of sorted fixed-size entries: the common part of the offset index and the time index.

Entries are found by their first field. New entries collect in memory, and `flush` writes them at once. A crash may lose
them, because recovery rebuilds the index of an unflushed segment. The file is opened for each use, so a broker with
many segments holds no descriptors for their indexes.
"""

from struct import Struct
from typing import ClassVar, Final

from sskafka.model.buffers import Buffer
from sskafka.storage.disk import Disk, File
from sskafka.storage.errors import CorruptFileError

_BLOCK_ENTRIES: Final = 256


class SparseIndex:
    __slots__ = ("_disk", "_file_entries", "_first_pending", "_pending", "count", "last_key", "last_value", "path")

    layout: ClassVar[Struct]

    def __init__(self, disk: Disk, path: str, size_bytes: int = 0) -> None:
        """`size_bytes`: the size of the existing file. Raise CorruptFileError if the file ends within an entry."""
        self._disk = disk
        self.path = path
        self._pending = bytearray()
        self._first_pending = 0
        self.last_key = -1
        self.last_value = 0
        if size_bytes % self.layout.size:
            raise CorruptFileError(f"{path} has {size_bytes} bytes, not a multiple of {self.layout.size}")
        self._file_entries = self.count = size_bytes // self.layout.size
        if self._file_entries:
            self.last_key, self.last_value = self._read_last()

    @property
    def pending(self) -> int:
        """Number of entries that are in memory only."""
        return self.count - self._file_entries

    def add(self, key: int, value: int) -> None:
        if not self._pending:
            self._first_pending = key
        self._pending += self.layout.pack(key, value)
        self.last_key, self.last_value = key, value
        self.count += 1

    def floor(self, key: int) -> tuple[int, int] | None:
        """Return the last entry whose key is at most `key`."""
        if self._pending and key >= self._first_pending:
            number = _count_in(self.layout, self._pending, key) - 1
            found_key, value = self.layout.unpack_from(self._pending, number * self.layout.size)
            return found_key, value
        return self._in_file(self._count_up_to(key) - 1)

    def entries(self) -> list[tuple[int, int]]:
        self.flush()
        return list(self.layout.iter_unpack(self._read(0, self._file_entries)))

    def flush(self, *, sync: bool = False) -> None:
        """Write pending entries. The file exists afterwards, even if it is empty."""
        file = self._disk.open(self.path, create=True)
        try:
            if self._pending:
                file.write_at(self._pending, self._file_entries * self.layout.size)
                self._file_entries = self.count
                self._pending = bytearray()
            if sync:
                file.sync()
        finally:
            file.close()

    def truncate(self, below_value: int) -> None:
        """Remove every entry whose second field is `below_value` or more."""
        kept = [entry for entry in self.entries() if entry[1] < below_value]
        self._resize(len(kept))
        self.last_key, self.last_value = kept[-1] if kept else (-1, 0)

    def reset(self) -> None:
        self._pending = bytearray()
        self._resize(0)
        self.last_key, self.last_value = -1, 0

    def _resize(self, entries: int) -> None:
        file = self._disk.open(self.path, create=True)
        try:
            file.truncate(entries * self.layout.size)
        finally:
            file.close()
        self._file_entries = self.count = entries

    def _read_last(self) -> tuple[int, int]:
        """Return the last entry. A file preallocated by a crashed broker ends in zeros, which are not entries."""
        key, value = self.layout.unpack(self._read(self._file_entries - 1, 1))
        first_key, first_value = self.layout.unpack(self._read(0, 1))
        if key < first_key or value < first_value:
            raise CorruptFileError(f"the last entry of {self.path} is below its first")
        return key, value

    def entry_before(self, key: int, steps: int) -> tuple[int, int] | None:
        """Return the entry `steps` before the one that `floor` returns, or None if there are not that many."""
        self.flush()
        return self._in_file(self._count_up_to(key) - 1 - steps)

    def _in_file(self, number: int) -> tuple[int, int] | None:
        if number < 0:
            return None
        key, value = self.layout.unpack(self._read(number, 1))
        return key, value

    def _count_up_to(self, key: int) -> int:
        """Return how many entries of the file have a key of at most `key`, by binary search over blocks, then within
        one."""
        if not self._file_entries:
            return 0
        file = self._disk.open(self.path)
        try:
            low, high = 0, (self._file_entries - 1) // _BLOCK_ENTRIES
            while low < high:
                middle = (low + high + 1) // 2
                first = self._read_from(file, middle * _BLOCK_ENTRIES, 1)
                if self.layout.unpack(first)[0] <= key:
                    low = middle
                else:
                    high = middle - 1
            count = min(_BLOCK_ENTRIES, self._file_entries - low * _BLOCK_ENTRIES)
            block = self._read_from(file, low * _BLOCK_ENTRIES, count)
        finally:
            file.close()
        return low * _BLOCK_ENTRIES + _count_in(self.layout, block, key)

    def _read(self, entry: int, count: int) -> bytes:
        file = self._disk.open(self.path)
        try:
            return bytes(self._read_from(file, entry, count))
        finally:
            file.close()

    def _read_from(self, file: File, entry: int, count: int) -> Buffer:
        """Raise CorruptFileError if the file has become shorter."""
        entries = file.read_at(count * self.layout.size, entry * self.layout.size)
        if len(entries) != count * self.layout.size:
            raise CorruptFileError(f"{self.path} ends before entry {entry + count} of {self._file_entries}")
        return entries


def _count_in(layout: Struct, block: Buffer, key: int) -> int:
    """Return how many entries of the block have a key of at most `key`."""
    low, high = 0, len(block) // layout.size
    while low < high:
        middle = (low + high) // 2
        if layout.unpack_from(block, middle * layout.size)[0] <= key:
            low = middle + 1
        else:
            high = middle
    return low
