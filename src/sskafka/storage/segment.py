"""One segment of a log: a file of batches and its indexes.

    00000000000000004711.log          consecutive batches; the name is the base offset of the segment
    00000000000000004711.index        offset -> position            (offset_index.py)
    00000000000000004711.timeindex    timestamp -> offset           (time_index.py)
    00000000000000004711.txnindex     aborted transactions          (transactions/index.py)

Only the newest segment of a log grows. The files of the others are opened when they are read. `size_bytes` is the valid
size: bytes after it were left by a failed write and are ignored.
"""

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from sskafka.model.buffers import Buffer
from sskafka.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    check_structure,
    read_header,
    read_offset_and_size,
)
from sskafka.storage import offset_index, time_index
from sskafka.storage.batch_count import BatchCount
from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.disk import Disk, File, replace_file
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.log_config import LogConfig
from sskafka.storage.offset_index import OffsetIndex
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.time_index import TimeIndex
from sskafka.storage.transactions import index as transaction_index
from sskafka.storage.transactions.index import TransactionIndex

LOG_SUFFIX = ".log"
DELETED_SUFFIX = ".deleted"
SUFFIXES = (LOG_SUFFIX, offset_index.SUFFIX, time_index.SUFFIX, transaction_index.SUFFIX)
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_PENDING_ENTRIES_MAX: Final = 512
NOTHING_KNOWN: Final = 2**63 - 1  # a floor above all offsets
BEYOND: Final = -1  # in place of a position: after the last batch
_BATCHES_MAX: Final = 1024


def file_stem(offset: int) -> str:
    return f"{offset:020d}"


def log_path(directory: str, base_offset: int) -> str:
    return os.path.join(directory, file_stem(base_offset) + LOG_SUFFIX)


class Segment:
    __slots__ = (
        "_bytes_since_index",
        "_data_records",
        "_disk",
        "_file",
        "_file_suffix",
        "_index_entries_max",
        "_index_interval_bytes",
        "_is_preallocated",
        "_open_files",
        "_stem",
        "_time_index_entries_max",
        "base_offset",
        "created_ms",
        "first_timestamp",
        "found_batches",
        "is_index_flush_due",
        "is_index_full",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "recent",
        "size_bytes",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        config: LogConfig,
        open_files: OpenFiles,
        *,
        size_bytes: int = 0,
        index_bytes: int = 0,
        time_index_bytes: int = 0,
        created_ms: int = NO_TIMESTAMP,
        file_suffix: str = "",
    ) -> None:
        """Open a segment. The sizes are those of the existing files; raise CorruptFileError if an index is impossible.

        `file_suffix` is appended to the usual names while the segment is not yet part of a log."""
        stem = os.path.join(directory, file_stem(base_offset))
        self._disk = disk
        self._stem = stem
        self._file_suffix = file_suffix
        self._file: File | None = None
        self._open_files = open_files
        self._index_interval_bytes = config.index_interval_bytes
        self._index_entries_max = config.segment_index_bytes // OffsetIndex.layout.size
        self._time_index_entries_max = config.segment_index_bytes // TimeIndex.layout.size - 1
        self._bytes_since_index = 0
        self._data_records = 0
        self._is_preallocated = config.preallocate
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.created_ms = created_ms
        self.first_timestamp = NO_TIMESTAMP
        self.found_batches = BatchCount(size_bytes)
        """Those that were in the file when it was opened or truncated. `note_batch` counts the records of others."""
        self.offset_index = OffsetIndex(disk, stem + offset_index.SUFFIX + file_suffix, base_offset, index_bytes)
        self.time_index = TimeIndex(disk, stem + time_index.SUFFIX + file_suffix, base_offset, time_index_bytes)
        self.transaction_index = TransactionIndex(disk, stem + transaction_index.SUFFIX + file_suffix)
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last_entry
        self.recent = RecentBatches(NOTHING_KNOWN if size_bytes else base_offset - 1)
        self._note_index_size()

    @classmethod
    def create(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        config: LogConfig,
        open_files: OpenFiles,
        now_ms: int,
        file_suffix: str = "",
    ) -> "Segment":
        """Create an empty segment and replace existing files. Its name is durable once the directory is synced."""
        segment = cls(disk, directory, base_offset, config, open_files, created_ms=now_ms, file_suffix=file_suffix)
        disk.open(segment.log_path, create=True).close()
        segment.file.truncate(0)
        if config.preallocate:
            segment.file.preallocate(config.segment_bytes)
        segment.offset_index.reset()
        segment.time_index.reset()
        segment.transaction_index.reset()
        return segment

    @property
    def log_path(self) -> str:
        return self._stem + LOG_SUFFIX + self._file_suffix

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.log_path)
            self._open_files.opened(self)
        return self._file

    def uses(self, file: File) -> bool:
        """Return whether `file` is the open log file of this segment."""
        return self._file is file

    def __repr__(self) -> str:
        return f"Segment({self._stem}, {self.size_bytes} bytes)"

    # ---- writing

    def undo_write(self) -> None:
        self.file.truncate(self.size_bytes)

    def note_batch(self, last_offset: int, size_bytes: int, max_timestamp: int, data_records: int) -> None:
        """Count and index the next batch, which has been written to the file at `size_bytes`."""
        position = self.size_bytes
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if self._bytes_since_index > self._index_interval_bytes:
            self._index(last_offset, position)
        if position == 0:
            self.first_timestamp = max_timestamp
        self._bytes_since_index += size_bytes
        self.size_bytes = position + size_bytes
        self.recent.add(last_offset, position)
        if data_records > 0:
            self._data_records += data_records

    def _index(self, last_offset: int, position: int) -> None:
        self.offset_index.add(last_offset - self.base_offset, position)
        self.time_index.maybe_add(self.max_timestamp, self.max_timestamp_offset)
        self._bytes_since_index = 0
        self._note_index_size()

    def _note_index_size(self) -> None:
        offsets, times = self.offset_index, self.time_index
        self.is_index_flush_due = offsets.pending >= _PENDING_ENTRIES_MAX or times.pending >= _PENDING_ENTRIES_MAX
        self.is_index_full = offsets.count >= self._index_entries_max or times.count >= self._time_index_entries_max

    def flush_indexes(self, *, sync: bool = False) -> None:
        self.is_index_flush_due = False
        self.offset_index.flush(sync=sync)
        self.time_index.flush(sync=sync)
        self.transaction_index.flush(sync=sync)

    def seal(self, *, sync: bool = False) -> None:
        """Close the segment for appends: add the last time index entry and write everything to the files."""
        self.time_index.maybe_add(self.max_timestamp, self.max_timestamp_offset)
        self.flush_indexes(sync=sync)
        if self._is_preallocated:
            self.file.truncate(self.size_bytes)

    def close(self) -> None:
        """Close the file. Slices that were handed out stay readable."""
        self._file = None

    # ---- finding

    def position_of(self, offset: int) -> int:
        """Return the position of the first batch that ends at `offset` or later, `size_bytes` if there is none."""
        position = self.recent.position_of(offset)
        if position is not None:
            return self.size_bytes if position == BEYOND else position
        for position, header in self.headers(self._walk_start(self._index_entry(offset))):
            if header.base_offset + header.last_offset_delta >= offset:
                return position
        return self.size_bytes

    def _index_entry(self, offset: int) -> tuple[int, int] | None:
        try:
            return self.offset_index.floor(offset - self.base_offset)
        except CorruptFileError:  # its file has lost entries, which a scrub adds again
            return None

    def _walk_start(self, entry: tuple[int, int] | None) -> int:
        """Return the position in an entry of the offset index, or 0 if the entry cannot be right.

        An entry whose bytes have changed could point behind the batch that is looked for: records would be skipped."""
        if entry is None:
            return 0
        key, position = entry
        if not 0 <= position <= self.size_bytes - HEADER_BYTES:
            return 0
        try:
            header = self.header_at(position)
            check_structure(header, self.size_bytes - position)
        except CorruptBatchError:
            return 0
        return position if 0 <= header.last_offset - self.base_offset <= key else 0

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        return walk_headers(self.file, position, self.size_bytes)

    def header_at(self, position: int) -> BatchHeader:
        return read_header(self._read_whole(HEADER_BYTES, position))

    def batch_size_at(self, position: int) -> int:
        return read_offset_and_size(self._read_whole(LOG_OVERHEAD_BYTES, position))[1]

    def _read_whole(self, size: int, position: int) -> Buffer:
        data = self.file.read_at(size, position)
        if len(data) < size:
            raise CorruptBatchError(f"{self.log_path} ends within the batch at byte {position}")
        return data

    def is_older_than(self, age_ms: int, now_ms: int) -> bool:
        """Compare the age of the first batch with `age_ms`; use the creation time if it has no timestamp."""
        since = self.first_timestamp if self.first_timestamp >= 0 else self.created_ms
        return since >= 0 and now_ms - since > age_ms

    @property
    def newest_ms(self) -> int:
        """When the newest record was written, as far as known."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    def all_files(self) -> list[File]:
        """Return the log file and its indexes as they are on disk now, for a sync."""
        paths = [self._stem + suffix for suffix in SUFFIXES if suffix != LOG_SUFFIX]
        return [self.file, *(self._disk.open(path) for path in paths if self._disk.exists(path))]

    @property
    def record_count(self) -> int:
        """Number of data records, without control records, once `found_batches` are counted."""
        return self.found_batches.records + self._data_records

    # ---- changing existing data

    def open_for_append(self, visit: Callable[[BatchHeader], object] = lambda header: None) -> int:
        """Make a segment found on disk the active one. Return the next offset. `visit` gets the last headers: those
        that follow the last entry of the offset index."""
        index = self.offset_index
        indexed_from = self._walk_start((index.last_key, index.last_value) if index.count else None)
        next_offset = self.base_offset
        for position, header in self.headers(indexed_from):
            visit(header)
            next_offset = header.next_offset
            self._bytes_since_index = position + header.size_bytes - indexed_from
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        self.first_timestamp = self.header_at(0).max_timestamp if self.size_bytes else NO_TIMESTAMP
        self.recent.clear(next_offset - 1)
        return next_offset

    def check_indexes(self) -> None:
        """Raise CorruptFileError if the indexes cannot be this segment's. Entries are not compared with the log."""
        if self.offset_index.last_value >= max(self.size_bytes, 1):
            raise CorruptFileError(f"{self.offset_index.path} points beyond the end of the segment")
        if self.size_bytes and not self.time_index.count and self._has_timestamp():
            raise CorruptFileError(f"{self.time_index.path} is empty")
        for _ in self.transaction_index:
            break

    def _has_timestamp(self) -> bool:
        return self.size_bytes < HEADER_BYTES or self.header_at(0).max_timestamp >= 0

    def begin_rebuild(self, good_bytes: int) -> None:
        """Truncate the file to `good_bytes` and clear the indexes. `note_batch` for each batch rebuilds them."""
        if self.file.size() != good_bytes:
            self.file.truncate(good_bytes)
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self.size_bytes = self._bytes_since_index = 0
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self.first_timestamp = NO_TIMESTAMP
        self.found_batches = BatchCount(0)
        self._data_records = 0
        self.recent.clear(self.base_offset - 1)
        self._note_index_size()

    def truncate_at(self, offset: int) -> int:
        """Remove every batch that reaches `offset`. Return the new end: `offset`, or the start of such a batch."""
        position = self.position_of(offset)
        end_offset = offset if position == self.size_bytes else min(offset, self.header_at(position).base_offset)
        self.cut(position, end_offset)
        return end_offset

    def cut(self, position: int, end_offset: int) -> None:
        """Remove everything from the batch at `position` on, also from the indexes. A crash may bring it back unless
        the file is synced."""
        self.file.truncate(position)
        self.size_bytes = position
        self.offset_index.truncate(position)
        self.time_index.truncate(end_offset - self.base_offset)
        self.transaction_index.truncate(end_offset)
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last_entry
        self.found_batches = BatchCount(position)
        self._data_records = 0
        self._bytes_since_index = 0
        self._note_index_size()
        self.open_for_append()

    def replace_indexes(self, offsets: Buffer, times: Buffer) -> None:
        """Replace the content of the offset index and the time index, because it does not match the batches."""
        for index, content in ((self.offset_index, offsets), (self.time_index, times)):
            replace_file(self._disk, index.path, content, sync=False)
        self.offset_index = OffsetIndex(self._disk, self.offset_index.path, self.base_offset, len(offsets))
        self.time_index = TimeIndex(self._disk, self.time_index.path, self.base_offset, len(times))
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last_entry
        self._note_index_size()

    def mark_deleted(self) -> list[str]:
        """Rename the files and return their new paths, which are to be removed later.

        The segment closes its own file: a removed file that is still open frees no space."""
        self.close()
        renamed = []
        for suffix in SUFFIXES:
            path = self._stem + suffix
            if self._disk.exists(path):
                self._disk.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed


class RecentBatches:
    """The positions of a segment's newest batches, in memory, so that readers at the tail need not walk the file.

    The last offset and the position of every batch above a floor are kept. The number is bounded: when the list is
    full, its older half is dropped and the floor raised."""

    __slots__ = ("_last_offsets", "_positions", "floor")

    def __init__(self, floor: int) -> None:
        """`floor`: the last offset that is not remembered. There are no batches above it yet."""
        self.floor = floor
        self._last_offsets = array("q")
        self._positions = array("q")

    def add(self, last_offset: int, position: int) -> None:
        self._last_offsets.append(last_offset)
        self._positions.append(position)
        if len(self._positions) == _BATCHES_MAX:
            self._forget_half()

    def position_of(self, offset: int) -> int | None:
        """Return the position of the first batch that ends at `offset` or later, BEYOND, or None if it is not
        remembered."""
        if offset <= self.floor:
            return None
        index = bisect_left(self._last_offsets, offset)
        return self._positions[index] if index < len(self._positions) else BEYOND

    def clear(self, floor: int) -> None:
        self.floor = floor
        del self._last_offsets[:], self._positions[:]

    def _forget_half(self) -> None:
        half = _BATCHES_MAX // 2
        self.floor = self._last_offsets[half - 1]
        del self._last_offsets[:half]
        del self._positions[:half]
