"""The header of a zstd frame: how much memory a decoder needs.

 4  magic
 1  descriptor    bits 6-7 size of the content size, 5 single segment, 0-1 size of the dictionary id
(1  window)       exponent and mantissa; a single segment has none: its window is as large as the content
(dictionary id 1, 2 or 4) (content size 1, 2, 4 or 8)
"""

from struct import Struct

from sskafka.model.buffers import Buffer
from sskafka.records.batch import CorruptBatchError

_MAGIC = b"\x28\xb5\x2f\xfd"
_DESCRIPTOR_AT, _FIELDS_AT = 4, 5
_SINGLE_SEGMENT = 0x20
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZES = {1: Struct("<B"), 2: Struct("<H"), 4: Struct("<I"), 8: Struct("<Q")}
_TWO_BYTES_OFFSET = 256  # is added to a content size of two bytes


def memory_needed(data: Buffer) -> int:
    """Return the larger of the window and the content size, as far as the header says it."""
    if len(data) <= _FIELDS_AT or bytes(data[:_DESCRIPTOR_AT]) != _MAGIC:
        raise CorruptBatchError("the zstd data does not start with a frame")
    descriptor = data[_DESCRIPTOR_AT]
    is_single = bool(descriptor & _SINGLE_SEGMENT)
    at, window_bytes = _FIELDS_AT, 0
    if not is_single:
        base = 1 << (10 + (data[at] >> 3))
        window_bytes = base + (base >> 3) * (data[at] & 7)
        at += 1
    at += _DICTIONARY_ID_BYTES[descriptor & 3]
    size = 1 << (descriptor >> 6)
    if size == 1 and not is_single:
        return window_bytes  # the content size is not known
    if len(data) < at + size:
        raise CorruptBatchError("the zstd data ends within the frame header")
    content_bytes: int = _CONTENT_SIZES[size].unpack_from(data, at)[0]
    return max(window_bytes, content_bytes + (_TWO_BYTES_OFFSET if size == 2 else 0))
