"""A range of bytes in a segment file, returned in place of the bytes themselves.

The connection reads the slice when the socket has room. The slice holds the open file, so the bytes of a deleted
segment stay readable. Reading raises StorageError if the file was truncated below the end of the slice.
"""

from typing import Final

from sskafka.model.buffers import Buffer
from sskafka.records.batch import CorruptBatchError, crc_matches, iter_headers, whole_batches
from sskafka.storage.disk import File
from sskafka.storage.errors import StorageError

_OFFSET_BYTES: Final = 8


class FileSlice:
    __slots__ = ("file", "length", "position")

    starts_batch = True
    """Whether the first byte is that of a batch."""
    end_offset: int | None = None
    """If known, an offset that no batch of the slice reaches."""

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"FileSlice({self.position}+{self.length})"

    def part(self, start: int, length: int) -> "FileSlice":
        """Return the slice from `start` on, at most `length` bytes long."""
        kind = _MiddleSlice if start else type(self)
        return kind(self.file, self.position + start, min(length, self.length - start))

    def is_damaged(self, data: Buffer) -> bool:
        """Return whether a batch in `data`, the bytes of the slice, is damaged. The slice must start with a batch."""
        behind = self.file.read_at(_OFFSET_BYTES, self.position + self.length)
        is_cut_off = not behind and len(whole_batches(memoryview(data))) < len(data)  # the file ends within a batch
        return is_cut_off or has_bad_batch(data, self.end_offset, behind)

    def read(self) -> Buffer:
        """Read the whole slice. May block on the disk: use an executor unless the bytes are known to be cached."""
        return self._whole(self.file.read_at(self.length, self.position))

    def read_now(self) -> Buffer | None:
        """Return all bytes if they are in the page cache, otherwise None."""
        data = self.file.read_cached_at(self.length, self.position)
        return None if data is None else self._whole(data)

    def _whole(self, data: Buffer) -> Buffer:
        if len(data) != self.length:
            raise StorageError(f"{self.length} bytes at {self.position} were truncated while they were being read")
        return data


class _MiddleSlice(FileSlice):
    __slots__ = ()

    starts_batch = False


class ClosedSlice(FileSlice):
    """A slice of a closed segment. The next segment begins at `end_offset`."""

    __slots__ = ("end_offset",)

    def __init__(self, file: File, position: int, length: int, end_offset: int) -> None:
        super().__init__(file, position, length)
        self.end_offset = end_offset

    def part(self, start: int, length: int) -> FileSlice:
        if start:
            return super().part(start, length)
        assert self.end_offset is not None
        return ClosedSlice(self.file, self.position, min(length, self.length), self.end_offset)


def has_bad_batch(data: Buffer, end_offset: int | None = None, behind: Buffer = b"") -> bool:
    """Return whether one of the whole batches in `data`, which starts with a batch, is damaged.

    It does not match its checksum, does not end before the next batch, or reaches `end_offset`: the checksum does not
    cover offsets. `behind` are the bytes that follow `data`: where it is cut off, they have the offset of the next
    batch."""
    view = memoryview(data)
    batches = whole_batches(view)
    next_offset = 0
    try:
        for position, header in iter_headers(batches):
            if header.base_offset < next_offset or not crc_matches(batches, header, position):
                return True
            next_offset = header.next_offset
    except CorruptBatchError:
        return True
    if end_offset is not None and next_offset > end_offset:
        return True
    cut_off = (bytes(view[len(batches) : len(batches) + _OFFSET_BYTES]) + behind)[:_OFFSET_BYTES]
    return len(cut_off) == _OFFSET_BYTES and int.from_bytes(cut_off, "big", signed=True) < next_offset
