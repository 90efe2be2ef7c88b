"""Fields of the hand-written codecs.

A legacy string has an int16 length, -1 for null; a compact string has the varint length + 1, 0 for null. Reading past
the end raises MalformedMessageError, IndexError or struct.error; callers turn all of them into the first.
"""

from struct import Struct
from typing import Final

from sskafka.wire.bounds import ARRAY_ELEMENTS_MAX
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.varint import decode_uvarint, encode_uvarint

TEXT_BYTES_MAX: Final = 2**15 - 1
"""Maximum length of a string in either encoding."""
NO_TAGS: Final = b"\0"
NULL_STRING: Final = b"\xff\xff"

_int16_at: Final = Struct(">h").unpack_from
_pack_int16: Final = Struct(">h").pack


def read_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    (length,) = _int16_at(buffer, position)
    position += 2
    if length < 0:
        return None, position
    return _read_text(buffer, position, length)


def read_compact_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    length, position = decode_uvarint(buffer, position)
    if length == 0:
        return None, position
    if length > TEXT_BYTES_MAX + 1:
        raise MalformedMessageError(f"a string has {length - 1} bytes; at most {TEXT_BYTES_MAX} are allowed")
    return _read_text(buffer, position, length - 1)


def _read_text(buffer: memoryview, position: int, length: int) -> tuple[str, int]:
    stop = position + length
    if stop > len(buffer):
        raise MalformedMessageError(f"a string has {length} bytes, but only {len(buffer) - position} are left")
    return buffer[position:stop].tobytes().decode(), stop


def require_text(text: str | None) -> str:
    if text is None:
        raise MalformedMessageError("a string that is not nullable is null")
    return text


def require_count(count: int) -> int:
    """Check a count for null and for the bound that Kafka has."""
    if count < 0:
        raise MalformedMessageError("an array that is not nullable is null")
    if count > ARRAY_ELEMENTS_MAX:
        raise MalformedMessageError(f"an array has {count} elements; at most {ARRAY_ELEMENTS_MAX} are allowed")
    return count


def require_room(room: int) -> None:
    """Check what is left of the number of topics and partitions that a request may have."""
    if room < 0:
        raise MalformedMessageError(f"the request has {-room} topics and partitions more than are allowed")


def require_end(buffer: memoryview, position: int) -> None:
    if position != len(buffer):
        raise MalformedMessageError(f"{len(buffer) - position} bytes after the message")


def string_field(text: str | None) -> bytes:
    if text is None:
        return NULL_STRING
    encoded = text.encode()
    return _pack_int16(len(encoded)) + encoded


def compact_string_field(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    encoded = text.encode()
    return encode_uvarint(len(encoded) + 1) + encoded
