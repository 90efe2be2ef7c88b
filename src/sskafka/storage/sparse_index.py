"""A file of fixed-size sorted entries: what the offset index and the time index have in common.

Entries are found by their first field. New ones collect in memory and go to the file in one write, when `flush` is
called: a crash may lose them, because recovery makes the index of an unflushed segment
anew. The file is opened for each use, so a broker with many segments holds no descriptors for their indexes.
"""

from struct import Struct
from typing import ClassVar

from sskafka.model.buffers import Buffer
from sskafka.storage.disk import Disk
from sskafka.storage.errors import CorruptFileError

_BLOCK_ENTRIES = 256


class SparseIndex:
    __slots__ = ("_disk", "_file_entries", "_first_pending", "_pending", "count", "last_key", "last_value", "path")

    layout: ClassVar[Struct]

    def __init__(self, disk: Disk, path: str, size_bytes: int = 0) -> None:
        """`size_bytes` of the file as it is; an index that stopped in the middle of an entry is not one."""
        self._disk = disk
        self.path = path
        self._pending = bytearray()
        self._first_pending = 0
        self.last_key = -1
        self.last_value = 0
        if size_bytes % self.layout.size:
            raise CorruptFileError(f"{path} has {size_bytes} bytes, no multiple of {self.layout.size}")
        self._file_entries = self.count = size_bytes // self.layout.size
        if self._file_entries:
            self.last_key, self.last_value = self._read_last()

    @property
    def pending(self) -> int:
        """How many entries are in memory only."""
        return self.count - self._file_entries

    def add(self, key: int, value: int) -> None:
        if not self._pending:
            self._first_pending = key
        self._pending += self.layout.pack(key, value)
        self.last_key, self.last_value = key, value
        self.count += 1

    def floor(self, key: int) -> tuple[int, int] | None:
        """The last entry whose key is not above `key`."""
        if self._pending and key >= self._first_pending:
            number = _count_in(self.layout, self._pending, key) - 1
            found_key, value = self.layout.unpack_from(self._pending, number * self.layout.size)
            return found_key, value
        return self._in_file(self._count_up_to(key) - 1)

    def entries(self) -> list[tuple[int, int]]:
        self.flush()
        return list(self.layout.iter_unpack(self._read(0, self._file_entries)))

    def flush(self, *, sync: bool = False) -> None:
        """Writes what is pending; the file exists afterwards, even if it is empty."""
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
        """Drops every entry whose second field is `below_value` or more."""
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
        """A file preallocated by a broker that crashed ends in zeros; those are not entries."""
        key, value = self.layout.unpack(self._read(self._file_entries - 1, 1))
        first_key, first_value = self.layout.unpack(self._read(0, 1))
        if key < first_key or value < first_value:
            raise CorruptFileError(f"the last entry of {self.path} is below its first")
        return key, value

    def entry_before(self, key: int, steps: int) -> tuple[int, int] | None:
        """The entry so many steps before the one that `floor` gives; None when there are not as many."""
        self.flush()
        return self._in_file(self._count_up_to(key) - 1 - steps)

    def _in_file(self, number: int) -> tuple[int, int] | None:
        if number < 0:
            return None
        key, value = self.layout.unpack(self._read(number, 1))
        return key, value

    def _count_up_to(self, key: int) -> int:
        """How many entries of the file have a key not above `key`: binary search over blocks, then within one."""
        if not self._file_entries:
            return 0
        file = self._disk.open(self.path)
        try:
            low, high = 0, (self._file_entries - 1) // _BLOCK_ENTRIES
            while low < high:
                middle = (low + high + 1) // 2
                first = file.read_at(self.layout.size, middle * _BLOCK_ENTRIES * self.layout.size)
                if self.layout.unpack(first)[0] <= key:
                    low = middle
                else:
                    high = middle - 1
            count = min(_BLOCK_ENTRIES, self._file_entries - low * _BLOCK_ENTRIES)
            block = file.read_at(count * self.layout.size, low * _BLOCK_ENTRIES * self.layout.size)
        finally:
            file.close()
        return low * _BLOCK_ENTRIES + _count_in(self.layout, block, key)

    def _read(self, entry: int, count: int) -> bytes:
        file = self._disk.open(self.path)
        try:
            return bytes(file.read_at(count * self.layout.size, entry * self.layout.size))
        finally:
            file.close()


def _count_in(layout: Struct, block: Buffer, key: int) -> int:
    """How many entries of the block have a key not above `key`."""
    low, high = 0, len(block) // layout.size
    while low < high:
        middle = (low + high) // 2
        if layout.unpack_from(block, middle * layout.size)[0] <= key:
            low = middle + 1
        else:
            high = middle
    return low
