"""Zigzag varints, the integer encoding in record batches.

Zigzag maps signed numbers to unsigned ones so that small magnitudes stay small (0, -1, 1, -2 -> 0, 1, 2, 3). The result
is written 7 bits per byte, lowest bits first, with the top bit set on all bytes but the last: at most 5 bytes for
int32 and 10 for int64.
"""

from typing import Final

from sskafka.model.native import i64
from sskafka.records.batch import CorruptBatchError

INT32_BYTES_MAX: Final = 5
INT64_BYTES_MAX: Final = 10


def zigzag(value: int) -> int:
    return (value << 1) ^ (value >> 63)


def _encode_folded(folded: int) -> bytes:
    encoded = bytearray()
    while folded > 0x7F:
        encoded.append((folded & 0x7F) | 0x80)
        folded >>= 7
    encoded.append(folded)
    return bytes(encoded)


# Deltas and lengths are nearly always small; for them a lookup is five times as fast as the loop.
_SMALL_MIN, _SMALL_MAX = -64, 2048
_SMALL = {value: _encode_folded(zigzag(value)) for value in range(_SMALL_MIN, _SMALL_MAX)}


def encode_varint(value: int) -> bytes:
    """Encode `value`, at most an int64, as a zigzag varint."""
    return _SMALL.get(value) or _encode_folded(zigzag(value))


def read_varint(data: bytes, position: i64, bytes_max: i64 = INT32_BYTES_MAX) -> tuple[int, i64]:
    """Return the number at `position` and the position after it; one or two bytes, the usual case, are fastest."""
    try:
        low: i64 = data[position]
        if low < 0x80:
            return (low >> 1) ^ -(low & 1), position + 1
        high: i64 = data[position + 1]
    except IndexError:
        raise CorruptBatchError(f"the data ends within the varint at byte {position}") from None
    if high < 0x80:
        folded = (low & 0x7F) | (high << 7)
        return (folded >> 1) ^ -(folded & 1), position + 2
    return _read_long(data, position, bytes_max)


def _read_long(data: bytes, position: int, bytes_max: int) -> tuple[int, i64]:
    """Read a long varint. The number may exceed 64 bits, because ten bytes have 70."""
    folded = shift = 0
    for at in range(position, min(position + bytes_max, len(data))):
        byte = data[at]
        folded |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (folded >> 1) ^ -(folded & 1), at + 1
        shift += 7
    raise CorruptBatchError(f"the varint at byte {position} is longer than {bytes_max} bytes")
