"""LZ4 frames, block by block.

    [magic 4][flags 1][block size 1](content size 8)(dictionary id 4)[header checksum 1]
    ([size 4][block](block checksum 4))...  [0 0 0 0](content checksum 4)

The library's frame decoder takes 24 us to initialize, far longer than a small batch needs; its block decoder takes a
third of a microsecond. This module therefore decodes the blocks itself. Frames with linked blocks, where
`has_independent_blocks` is false, are left to the library. The checksums of the frame are not verified, because the
CRC of the batch covers the same bytes; `check_frame` is for batches from clients, which may be invalid.
"""

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import cramjam

from sskafka.model.buffers import Buffer
from sskafka.records.batch import CorruptBatchError

BLOCK_BYTES = 64 * 1024
"""Size of the blocks written here."""

_MAGIC = b"\x04\x22\x4d\x18"
_HEADER = _MAGIC + b"\x60\x40\x82"  # version 1, independent blocks; blocks of 64 KB; header checksum
_FLAGS_AT = 4
_SIZE = Struct("<I")
_STORED = 0x80000000  # the block is stored uncompressed, because it did not shrink
_END = bytes(4)

_VERSION_MASK, _VERSION_1 = 0xC0, 0x40
_INDEPENDENT = 0x20
_BLOCK_CHECKSUMS = 0x10
_CONTENT_SIZE = 0x08
_CONTENT_CHECKSUM = 0x04
_DICTIONARY = 0x01
_BLOCK_BYTES_OF = {4: BLOCK_BYTES, 5: 256 * 1024, 6: 1024 * 1024, 7: 4 * 1024 * 1024}
_DESCRIPTOR_AT = 4
_HAS_CONTENT_SIZE = 0x08
_SHORT_DESCRIPTOR_BYTES, _CONTENT_SIZE_BYTES = 2, 8

_WORD = Struct("<I")
_MASK = 0xFFFF_FFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_STRIPE_BYTES = 16


class FrameHeader(NamedTuple):
    has_independent_blocks: bool
    """Each block can be decompressed without the previous one."""
    block_bytes_max: int
    checksum_bytes: int
    """Size of the checksum after each block."""
    content_checksum_bytes: int
    """Size of the checksum after the end mark."""
    size: int


def read_frame_header(data: memoryview) -> FrameHeader:
    if len(data) < len(_HEADER) or data[:_FLAGS_AT] != _MAGIC or data[_FLAGS_AT] & _VERSION_MASK != _VERSION_1:
        raise CorruptBatchError("the lz4 data does not start with a frame of version 1")
    flags, block_bytes_max = data[_FLAGS_AT], _BLOCK_BYTES_OF.get(data[_FLAGS_AT + 1] >> 4 & 7, 0)
    if not block_bytes_max:
        raise CorruptBatchError(f"the lz4 frame has an invalid block size code: {data[_FLAGS_AT + 1]}")
    optional = (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY else 0)
    return FrameHeader(
        has_independent_blocks=bool(flags & _INDEPENDENT) and not flags & _DICTIONARY,
        block_bytes_max=block_bytes_max,
        checksum_bytes=4 if flags & _BLOCK_CHECKSUMS else 0,
        content_checksum_bytes=4 if flags & _CONTENT_CHECKSUM else 0,
        size=len(_HEADER) + optional,
    )


def check_frame(data: memoryview, header: FrameHeader) -> None:
    """Raise CorruptBatchError if the header checksum is wrong, or if the frame does not end where the data ends:
    librdkafka does not read such data."""
    if header.size > len(data) or data[header.size - 1] != _header_checksum(bytes(data[_FLAGS_AT : header.size - 1])):
        raise CorruptBatchError("the lz4 frame has a wrong header checksum")
    end = header.size
    for block, _ in _blocks(data, header):
        end += _SIZE.size + len(block) + header.checksum_bytes
    end += len(_END) + header.content_checksum_bytes
    if end != len(data):
        raise CorruptBatchError(f"the lz4 frame ends at byte {end} of {len(data)}")


@lru_cache(maxsize=64)
def _header_checksum(descriptor: bytes) -> int:
    return xxhash32_short(descriptor) >> 8 & 0xFF


def decompressed_blocks(data: memoryview, header: FrameHeader) -> Iterator[memoryview]:
    """Yield the decompressed blocks. A block is valid only until the next one, because they share one buffer."""
    output = bytearray(header.block_bytes_max)
    for block, is_stored in _blocks(data, header):
        if is_stored:
            yield block
        else:
            size = cramjam.lz4.decompress_block_into(block, output, output_len=header.block_bytes_max)
            yield memoryview(output)[:size]


def _blocks(data: memoryview, header: FrameHeader) -> Iterator[tuple[memoryview, bool]]:
    position, end = header.size, len(data)
    while True:
        if end - position < _SIZE.size:
            raise CorruptBatchError("the lz4 data ends without an end mark")
        (word,) = _SIZE.unpack_from(data, position)
        if word == 0:
            return
        position += _SIZE.size
        size = word & ~_STORED
        if size + header.checksum_bytes > end - position:
            raise CorruptBatchError(f"the lz4 block has {size} bytes, but only {end - position} are left")
        yield data[position : position + size], bool(word & _STORED)
        position += size + header.checksum_bytes


def high_compression_frame(data: Buffer, level: int) -> Buffer:
    """Compress `data` into a frame with the slower, denser compressor.

    Only the library's frame encoder supports levels. Its blocks are independent too."""
    writer = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    writer.compress(data)
    return memoryview(writer.finish())


def frame_pieces(data: Buffer) -> Iterator[Buffer]:
    """Compress `data` into a frame with independent blocks: the Java client rejects linked blocks."""
    yield _HEADER
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_BYTES):
        plain = view[start : start + BLOCK_BYTES]
        block = memoryview(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            yield _SIZE.pack(len(block))
            yield block
        else:
            yield _SIZE.pack(len(plain) | _STORED)
            yield plain
    yield _END


def with_correct_checksum(frame: bytes) -> bytes:
    """Return a frame of message format 0 with the right header checksum, without which decoders reject it.

    Due to an old bug, the checksum of such frames also covers the magic number:

         4  magic        must not be covered by the checksum
         1  flags        bit 3: the content size follows
         1  block size
        (8  content size)
         1  checksum     second byte of the xxHash32 of flags, block size and content size"""
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
