"""Read a segment file outside of a broker: read-only, batch by batch, in every message format.

The walk continues after a damaged batch if its length is plausible, and stops otherwise; `end` is then the end of the
last whole batch.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from sskafka.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    CorruptBatchError,
    check_structure,
    crc_matches,
    read_header,
)
from sskafka.records.legacy import LEGACY_MAGICS, MAGIC_AT, LegacyMessage, message_size_bytes, read_message

_SHORTEST_BYTES = 26  # a message of format 0 without key and value
_CHUNK_BYTES = 1 << 20
# Possible start of a batch: the offset is below 2^56, the length neither 0 nor above 128 MB, the magic 0, 1 or 2. The
# checksum tells whether it is one.
_BATCH_BEGINNING = re.compile(rb"(?s)(?=\x00.{7}(?!\x00{4})[\x00-\x07].{7}[\x00-\x02])")


def base_offset_of(path: Path) -> int:
    """Return the offset in the name of a segment's file, or 0 for a renamed file."""
    return int(path.stem) if path.stem.isdigit() else 0


class StoredBatch(NamedTuple):
    """A batch, or a message of an old format, as stored in a file."""

    position: int
    header: BatchHeader | LegacyMessage
    data: bytes

    @property
    def size_bytes(self) -> int:
        return self.header.size_bytes

    @property
    def last_offset(self) -> int:
        return self.header.offset if isinstance(self.header, LegacyMessage) else self.header.last_offset

    @property
    def max_timestamp(self) -> int:
        return self.header.timestamp if isinstance(self.header, LegacyMessage) else self.header.max_timestamp

    @property
    def is_valid(self) -> bool:
        if isinstance(self.header, LegacyMessage):
            return self.header.is_valid
        return crc_matches(self.data, self.header)


class SegmentReader:
    """A segment's file, opened read-only; a context manager."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self._fd).st_size
        self._chunk, self._chunk_at = b"", 0
        self.end = 0
        """Where the last walk stopped."""
        self.problem: str | None = None
        """Why the walk stopped, unless it reached the end of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def walk(self, position: int = 0, max_bytes: int | None = None) -> Iterator[StoredBatch]:
        """Yield batches from `position` on until there is none. With `max_bytes` only those that end within it."""
        self.end, self.problem = position, None
        limit = self.size_bytes if max_bytes is None else min(max_bytes, self.size_bytes)
        while self.end < limit:
            try:
                batch = self.batch_at(self.end)
            except CorruptBatchError as error:
                self.problem = str(error)
                return
            if self.end + batch.size_bytes > limit:
                return
            yield batch
            self.end += batch.size_bytes

    def claimed_bytes(self, position: int) -> int:
        """Return the size that the batch at `position` claims to have, 0 if there is no batch."""
        head = self._read(LOG_OVERHEAD_BYTES, position)
        return len(head) and LOG_OVERHEAD_BYTES + int.from_bytes(head[-4:], "big", signed=True)

    def batch_at(self, position: int) -> StoredBatch:
        """Return the batch at `position`. Raise CorruptBatchError if there is no whole batch."""
        left = self.size_bytes - position
        head = self._read(HEADER_BYTES, position)
        if len(head) < _SHORTEST_BYTES:
            raise CorruptBatchError(f"{left} bytes are too few for a batch")
        if head[MAGIC_AT] in LEGACY_MAGICS:
            return self._message_at(position, head, left)
        if len(head) < HEADER_BYTES:
            raise CorruptBatchError(f"{left} bytes are too few for a batch header")
        header = read_header(head)
        check_structure(header, left)
        return StoredBatch(position, header, self._read(header.size_bytes, position))

    def _message_at(self, position: int, head: bytes, left: int) -> StoredBatch:
        size = message_size_bytes(head)
        if size > left:
            raise CorruptBatchError(f"a message of {size} bytes, but only {left} are there")
        data = self._read(size, position)
        return StoredBatch(position, read_message(data), data)

    def _read(self, size: int, position: int) -> bytes:
        start = position - self._chunk_at
        if start < 0 or start + size > len(self._chunk):
            self._chunk, self._chunk_at, start = self._read_chunk(max(size, _CHUNK_BYTES), position), position, 0
        return self._chunk[start : start + size]

    def _read_chunk(self, size: int, position: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and (part := os.pread(self._fd, size, position)):
            parts.append(part)
            size, position = size - len(part), position + len(part)
        return b"".join(parts)

    def next_good_batch(self, position: int) -> StoredBatch | None:
        """Return the first whole batch after `position` that matches its checksum, wherever it begins."""
        start = position + 1
        while start + _SHORTEST_BYTES <= self.size_bytes:
            chunk = self._read_chunk(_CHUNK_BYTES, start)
            has_anything = bool(chunk.strip(b"\0"))  # files that were not fully written often have long runs of zeros
            for found in _BATCH_BEGINNING.finditer(chunk) if has_anything else ():
                batch = self._good_batch_at(start + found.start())
                if batch is not None:
                    return batch
            start += max(len(chunk) - MAGIC_AT, 1)
        return None

    def _good_batch_at(self, position: int) -> StoredBatch | None:
        try:
            batch = self.batch_at(position)
        except CorruptBatchError:
            return None
        return batch if batch.is_valid else None
