"""Iterate over the batches of a segment.

`walk_headers` reads only as much of the file as the headers need, `walk_batches` reads all of it. Both raise
CorruptBatchError if the bytes up to `end` are not whole batches.
"""

from collections.abc import Iterator
from typing import Protocol

from sskafka.model.buffers import Buffer
from sskafka.records.batch import HEADER_BYTES, BatchHeader, CorruptBatchError, check_structure, read_header
from sskafka.storage.disk import File

_HEADERS_CHUNK_BYTES = 8 * 1024
_BATCHES_CHUNK_BYTES = 1024 * 1024


def walk_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    chunk: Buffer = b""
    chunk_at = position
    while position < end:
        if position + HEADER_BYTES > chunk_at + len(chunk):
            chunk_at = position
            chunk = file.read_at(min(_HEADERS_CHUNK_BYTES, end - position), position)
        header = _checked_header(chunk, position - chunk_at, end - position)
        yield position, header
        position += header.size_bytes


class Readable(Protocol):
    def read_at(self, size: int, position: int) -> Buffer: ...


def walk_batches(
    file: Readable, position: int, end: int, chunk_bytes: int = _BATCHES_CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield each batch's header and its bytes, which are valid until the next step."""
    chunk = memoryview(b"")
    chunk_at = position
    while position < end:
        start = position - chunk_at
        if start + HEADER_BYTES > len(chunk):
            chunk_at, start = position, 0
            chunk = memoryview(file.read_at(min(chunk_bytes, end - position), position))
        header = _checked_header(chunk, start, end - position)
        if start + header.size_bytes > len(chunk):
            chunk_at, start = position, 0
            size = min(max(chunk_bytes, header.size_bytes), end - position)
            chunk = memoryview(file.read_at(size, position))
        yield position, header, chunk[start : start + header.size_bytes]
        position += header.size_bytes


def _checked_header(chunk: Buffer, start: int, available_bytes: int) -> BatchHeader:
    if len(chunk) - start < HEADER_BYTES:
        raise CorruptBatchError(f"{len(chunk) - start} bytes are too few for a batch header")
    header = read_header(chunk, start)
    check_structure(header, available_bytes)
    return header
