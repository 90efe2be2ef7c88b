"""The header of a record batch (format v2), read and patched in place.

    offset  size  field
         0     8  base offset              patched by the leader, outside the CRC
         8     4  length                   bytes after this field
        12     4  partition leader epoch   patched by the leader, outside the CRC
        16     1  magic                    2
        17     4  CRC-32C                  of everything from byte 21 on
        21     2  attributes               bits 0-2 compression, 3 LogAppendTime, 4 transactional, 5 control
        23     4  last offset delta
        27     8  base timestamp
        35     8  max timestamp
        43     8  producer id
        51     2  producer epoch
        53     4  base sequence
        57     4  record count
        61     -  records

This module never reads beyond the header: produce and fetch handle batches as opaque bytes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from sskafka.model.buffers import Buffer
from sskafka.records.crc import crc32c

HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12  # base offset and length, which `length` does not count
MAGIC: Final = 2
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_HEADER: Final = Struct(">qiibIhiqqqhii")
_crc32c: Final = crc32c
_unpack_header: Final = _HEADER.unpack_from
_new_tuple: Final = tuple.__new__  # same as BatchHeader._make, without its length check
_OFFSET_AND_LENGTH: Final = Struct(">qi")
_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")
_EPOCH_AT: Final = 12
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
_FLAGS_AT: Final = 22  # low byte of the attributes
_MAX_TIMESTAMP_AT: Final = 35


class CorruptBatchError(Exception):
    """The bytes are not a valid batch: wrong length, magic or checksum."""


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return LOG_OVERHEAD_BYTES + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record. Sequences are int32 and wrap around to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at `position`; raise struct.error if fewer than 61 bytes are left."""
    return _new_tuple(BatchHeader, _unpack_header(buffer, position))


def write_header(buffer: bytearray | memoryview, header: BatchHeader, position: int = 0) -> None:
    _HEADER.pack_into(buffer, position, *header)


def iter_headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch in `buffer`; raise CorruptBatchError unless batches fill it exactly."""
    position, end = 0, len(buffer)
    while position < end:
        if end - position < HEADER_BYTES:
            raise CorruptBatchError(f"the last {end - position} bytes are too few for a batch header")
        header = read_header(buffer, position)
        check_structure(header, end - position)
        yield position, header
        position += header.size_bytes


def check_structure(header: BatchHeader, available_bytes: int) -> None:
    """Check the magic and the length, which the CRC does not cover; raise CorruptBatchError if one is wrong."""
    if header.magic != MAGIC:
        raise CorruptBatchError(f"magic {header.magic} is not {MAGIC}")
    if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptBatchError(f"batch length {header.length} is shorter than a batch header")
    if header.length + LOG_OVERHEAD_BYTES > available_bytes:
        raise CorruptBatchError(
            f"the batch has {header.length + LOG_OVERHEAD_BYTES} bytes, but only {available_bytes} are available"
        )


def is_transactional(batch: Buffer) -> bool:
    """Return whether the batch at the start of `batch` is transactional, reading only its attributes."""
    return len(batch) > _FLAGS_AT and bool(batch[_FLAGS_AT] & TRANSACTIONAL)


def crc_matches(buffer: Buffer, header: BatchHeader, position: int = 0) -> bool:
    end = position + LOG_OVERHEAD_BYTES + header.length
    return bool(_crc32c(memoryview(buffer)[position + _ATTRIBUTES_AT : end]) == header.crc)


def assign_offset(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Set the base offset and leader epoch of a produced batch. The CRC covers neither field."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + _EPOCH_AT, leader_epoch)


def set_append_time(buffer: bytearray | memoryview, position: int, header: BatchHeader, timestamp_ms: int) -> None:
    """Set LogAppendTime and the max timestamp of the batch, and recompute its CRC."""
    _INT16.pack_into(buffer, position + _ATTRIBUTES_AT, header.attributes | LOG_APPEND_TIME)
    _INT64.pack_into(buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    write_crc(buffer, position, header.size_bytes)


def write_crc(buffer: bytearray | memoryview, position: int, size_bytes: int) -> None:
    crc = _crc32c(memoryview(buffer)[position + _ATTRIBUTES_AT : position + size_bytes])
    _UINT32.pack_into(buffer, position + _CRC_AT, crc)


def read_offset_and_size(buffer: Buffer, position: int = 0) -> tuple[int, int]:
    """Return base offset and total size of the batch at `position`, which is enough to iterate over a segment."""
    base_offset, length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
    return base_offset, length + LOG_OVERHEAD_BYTES


def whole_batches(records: memoryview) -> memoryview:
    """Return `records` without an incomplete batch at the end."""
    position, end = 0, len(records)
    while end - position >= LOG_OVERHEAD_BYTES:
        _, size_bytes = read_offset_and_size(records, position)
        if size_bytes < LOG_OVERHEAD_BYTES or size_bytes > end - position:
            break
        position += size_bytes
    return records[:position]
