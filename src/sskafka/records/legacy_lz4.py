"""LZ4 frames of message format 0. Their header checksum is wrong, due to an old bug: it also covers the magic number.

    4  magic        must not be covered by the checksum
    1  flags        bit 3: the content size follows
    1  block size
   (8  content size)
    1  checksum     second byte of the xxHash32 of flags, block size and content size

Decoders reject such frames, so the checksum is corrected before decoding.
"""

from struct import Struct

_DESCRIPTOR_AT = 4
_HAS_CONTENT_SIZE = 0x08
_SHORT_DESCRIPTOR_BYTES, _CONTENT_SIZE_BYTES = 2, 8

_WORD = Struct("<I")
_MASK = 0xFFFF_FFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_STRIPE_BYTES = 16


def with_correct_checksum(frame: bytes) -> bytes:
    if len(frame) <= _DESCRIPTOR_AT + _SHORT_DESCRIPTOR_BYTES:
        return frame
    size = _SHORT_DESCRIPTOR_BYTES + (_CONTENT_SIZE_BYTES if frame[_DESCRIPTOR_AT] & _HAS_CONTENT_SIZE else 0)
    checksum_at = _DESCRIPTOR_AT + size
    checksum = xxhash32_short(frame[_DESCRIPTOR_AT:checksum_at]) >> 8 & 0xFF
    return frame[:checksum_at] + bytes([checksum]) + frame[checksum_at + 1 :]


def xxhash32_short(data: bytes) -> int:
    """Return the xxHash32, with seed 0, of fewer than 16 bytes, for which the loop over stripes is not needed."""
    assert len(data) < _STRIPE_BYTES, "a frame descriptor has at most 14 bytes"
    value = _PRIME_5 + len(data)
    words = len(data) // _WORD.size * _WORD.size
    for (word,) in _WORD.iter_unpack(data[:words]):
        value = _rotated(value + word * _PRIME_3, 17) * _PRIME_4
    for byte in data[words:]:
        value = _rotated(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return value << bits & _MASK | value >> 32 - bits
