"""Unsigned varints: 7 bits per byte, lowest bits first, the top bit set on all bytes but the last.

Kafka uses them for every length, count and tag of flexible versions. Lengths are encoded as length + 1: 0 means null.
"""

from typing import Final

from sskafka.model.buffers import Buffer
from sskafka.wire.bounds import TAGGED_FIELDS_MAX
from sskafka.wire.errors import MalformedMessageError

UVARINT_MAX: Final = 0xFFFF_FFFF

# Nearly all lengths are short; a lookup is faster than computing them.
_SHORT: Final = tuple(bytes((value,)) for value in range(0x80)) + tuple(
    bytes((value & 0x7F | 0x80, value >> 7)) for value in range(0x80, 0x400)
)
_SHORT_COUNT: Final = len(_SHORT)


def encode_uvarint(value: int) -> bytes:
    if 0 <= value < _SHORT_COUNT:
        return _SHORT[value]
    if not 0 <= value <= UVARINT_MAX:
        raise ValueError(f"{value} is not an unsigned 32-bit number")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the value at `position` and the position after it; raise IndexError if the buffer ends within it."""
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    second = buffer[position + 1]
    if second < 0x80:
        return byte & 0x7F | second << 7, position + 2
    return _decode_long_uvarint(buffer, position + 2, byte & 0x7F | (second & 0x7F) << 7)


def _decode_long_uvarint(buffer: Buffer, position: int, value: int) -> tuple[int, int]:
    for shift in (14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise MalformedMessageError("a varint is longer than five bytes")


def skip_tagged_fields(buffer: Buffer, position: int) -> int:
    """Return the position after a section of tagged fields, all of which are ignored."""
    count, position = decode_uvarint(buffer, position)
    return skip_fields(buffer, position, require_tag_count(count))


def skip_fields(buffer: Buffer, position: int, count: int) -> int:
    """Return the position after `count` tagged fields."""
    end = len(buffer)
    for _ in range(count):
        _tag, position = decode_uvarint(buffer, position)
        size, position = decode_uvarint(buffer, position)
        position += size
        if position > end:
            raise MalformedMessageError(f"a tagged field has {size} bytes, more than are left")
    return position


def read_tagged_fields(buffer: memoryview, position: int) -> tuple[list[tuple[int, memoryview]], int]:
    """Return the tagged fields at `position`, and the position after them."""
    count, position = decode_uvarint(buffer, position)
    end = len(buffer)
    fields: list[tuple[int, memoryview]] = []
    for _ in range(require_tag_count(count)):
        tag, position = decode_uvarint(buffer, position)
        size, position = decode_uvarint(buffer, position)
        if position + size > end:
            raise MalformedMessageError(f"a tagged field has {size} bytes, more than are left")
        fields.append((tag, buffer[position : position + size]))
        position += size
    return fields, position


def require_tag_count(count: int) -> int:
    if count > TAGGED_FIELDS_MAX:
        raise MalformedMessageError(f"{count} tagged fields; at most {TAGGED_FIELDS_MAX} are allowed")
    return count
