"""`<base offset>.txnindex`: the aborted transactions whose markers lie in a segment, in the order of the markers.

    size  field
       2  version, 0
       8  producer id
       8  first offset of the transaction in this partition
       8  last offset: the abort marker's
       8  last stable offset when the marker was written

The file exists only if it has entries. `flush` writes new entries; recovery rebuilds entries that a crash lost. A
reader up to some offset may stop at the first entry whose last stable offset has reached that offset: all later entries
began after it.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from sskafka.storage.disk import Disk, read_file
from sskafka.storage.errors import CorruptFileError

SUFFIX = ".txnindex"
_LAYOUT = Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Aborts are rare, so all of a segment's entries stay in memory after the first read."""

    __slots__ = ("_disk", "_entries", "_file_entries", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self._entries: list[AbortedTxn] | None = None
        self._file_entries = 0

    def add(self, aborted: AbortedTxn) -> None:
        self._loaded().append(aborted)

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._loaded())

    def overlapping(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTxn], bool]:
        """Return the transactions with records in [start, end), and whether later segments can be skipped."""
        found = []
        for aborted in self._loaded():
            if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def flush(self, *, sync: bool = False) -> None:
        if not self._entries:  # not loaded and so not changed, or nothing to write
            return
        file = self._disk.open(self.path, create=True)
        try:
            new = b"".join(_LAYOUT.pack(_VERSION, *aborted) for aborted in self._entries[self._file_entries :])
            file.write_at(new, self._file_entries * _LAYOUT.size)
            self._file_entries = len(self._entries)
            if sync:
                file.sync()
        finally:
            file.close()

    def truncate(self, end_offset: int) -> None:
        """Remove the aborts whose markers lie at `end_offset` or beyond."""
        kept = [aborted for aborted in self._loaded() if aborted.last_offset < end_offset]
        if len(kept) < len(self._loaded()):
            self.reset()
            self._entries = kept
            self.flush()

    def reset(self) -> None:
        if self._disk.exists(self.path):
            self._disk.remove(self.path)
        self._entries = []
        self._file_entries = 0

    def _loaded(self) -> list[AbortedTxn]:
        if self._entries is None:
            data = read_file(self._disk, self.path) if self._disk.exists(self.path) else b""
            self._entries = list(_parse(data, self.path))
            self._file_entries = len(self._entries)
        return self._entries


def _parse(data: bytes, path: str) -> Iterator[AbortedTxn]:
    if len(data) % _LAYOUT.size:
        raise CorruptFileError(f"{path} has {len(data)} bytes, not a multiple of {_LAYOUT.size}")
    previous = -1
    for version, *fields in _LAYOUT.iter_unpack(data):
        aborted = AbortedTxn(*fields)
        if version != _VERSION or aborted.last_offset < max(previous, aborted.first_offset):
            raise CorruptFileError(f"{path} has an invalid entry: version {version}, {aborted}")
        previous = aborted.last_offset
        yield aborted
