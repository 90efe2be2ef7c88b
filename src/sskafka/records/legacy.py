"""Message formats 0 and 1, the predecessors of record batches (format 2).

    offset  size  field
         0     8  offset                 of a compressed message: offset of its last inner message
         8     4  size                   bytes after this field
        12     4  CRC-32                 of all bytes after this field
        16     1  magic                  0 or 1; same position as in a batch
        17     1  attributes             bits 0-2 compression, 3 LogAppendTime (format 1)
        18     8  timestamp              format 1 only
         -     4  key length (-1: no key), then the key
         -     4  value length (-1: no value), then the value

The value of a compressed message is a sequence of messages of the same format. Inner offsets are absolute in format 0;
in format 1 they count from 0, and the outer offset is the absolute offset of the last inner message. With LogAppendTime
the outer timestamp applies to all inner messages.

This module only reads these formats, to inspect old log files. Brokers neither accept nor serve them.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from sskafka.model.buffers import Buffer
from sskafka.records.batch import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    CorruptBatchError,
)
from sskafka.records.compression import DECOMPRESSED_BYTES_MAX, Compression, codec_of, decompress
from sskafka.records.lz4_frame import with_correct_checksum

MAGIC_AT = 16
LEGACY_MAGICS = frozenset({0, 1})

_HEAD = Struct(">qiIbb")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_CRC_FROM = 16
_OVERHEAD_BYTES = {0: _HEAD.size + 2 * _INT32.size, 1: _HEAD.size + _INT64.size + 2 * _INT32.size}


class LegacyMessage(NamedTuple):
    offset: int
    size_bytes: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    is_valid: bool

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def uses_append_time(self) -> bool:
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME)


def message_size_bytes(buffer: Buffer, position: int = 0) -> int:
    """Return the total size of the message at `position`; raise CorruptBatchError if the size or magic is invalid."""
    _offset, length, _crc, magic, _attributes = _HEAD.unpack_from(buffer, position)
    size_bytes = LOG_OVERHEAD_BYTES + int(length)
    if magic not in LEGACY_MAGICS:
        raise CorruptBatchError(f"magic {magic} is not that of a legacy message")
    if size_bytes < _OVERHEAD_BYTES[magic]:
        raise CorruptBatchError(f"a message of {size_bytes} bytes is shorter than its fixed fields")
    return size_bytes


def read_message(buffer: Buffer, position: int = 0) -> LegacyMessage:
    """Return the message at `position`; its value is not decompressed."""
    if len(buffer) - position < _HEAD.size:
        raise CorruptBatchError(f"{len(buffer) - position} bytes are too few for a message")
    end = position + message_size_bytes(buffer, position)
    if end > len(buffer):
        raise CorruptBatchError(f"the message has {end - position} bytes, but only {len(buffer) - position} are left")
    data = bytes(memoryview(buffer)[position:end])
    offset, _length, crc, magic, attributes = _HEAD.unpack_from(data)
    at, timestamp = _HEAD.size, NO_TIMESTAMP
    if magic > 0:
        (timestamp,) = _INT64.unpack_from(data, at)
        at += _INT64.size
    key, at = _read_nullable(data, at)
    value, at = _read_nullable(data, at)
    is_valid = crc32(data[_CRC_FROM:]) == crc
    return LegacyMessage(offset, len(data), crc, magic, attributes, timestamp, key, value, is_valid)


def messages_inside(outer: LegacyMessage, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> list[LegacyMessage]:
    """Return the messages that a consumer sees: the message itself, or its inner messages with absolute offsets."""
    codec = codec_of(outer.compression)
    if codec is Compression.NONE:
        return [outer]
    data = outer.value or b""
    if codec is Compression.LZ4 and outer.magic == 0:
        data = with_correct_checksum(data)
    inner = list(_read_messages(bytes(decompress(codec, data, max_bytes)), outer.magic))
    if not inner:
        raise CorruptBatchError(f"the compressed message at offset {outer.offset} is empty")
    base_offset = outer.offset - inner[-1].offset if outer.magic > 0 else 0
    timestamp = outer.timestamp if outer.uses_append_time else None
    return [
        one._replace(
            offset=base_offset + one.offset,
            attributes=one.attributes | (outer.attributes & LOG_APPEND_TIME),
            timestamp=one.timestamp if timestamp is None else timestamp,
        )
        for one in inner
    ]


def _read_messages(data: bytes, magic: int) -> Iterator[LegacyMessage]:
    position = 0
    while position < len(data):
        message = read_message(data, position)
        if message.magic != magic:
            raise CorruptBatchError(f"a message of format {message.magic} is nested in one of format {magic}")
        if message.compression != Compression.NONE:
            raise CorruptBatchError("a compressed message is nested in a compressed message")
        yield message
        position += message.size_bytes


def _read_nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    if at + _INT32.size > len(data):
        raise CorruptBatchError(f"the message ends within the length at byte {at}")
    (length,) = _INT32.unpack_from(data, at)
    at += _INT32.size
    if length < 0:
        return None, at
    if at + length > len(data):
        raise CorruptBatchError(f"a field has {length} bytes, but only {len(data) - at} are left in the message")
    return data[at : at + length], at + length
