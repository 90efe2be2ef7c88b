"""LZ4 frames, block by block.

    [magic 4][flags 1][block size 1](content size 8)(dictionary id 4)[header checksum 1]
    ([size 4][block](block checksum 4))...  [0 0 0 0](content checksum 4)

The library's own reader of frames takes 24 us to get ready, many times what a small batch needs; its reader of blocks
takes a third of one. Frames whose blocks build on each other are left to the former (`has_own_blocks` is false).
Nothing is compared with the frame's checksums: the batch around it has one.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import cramjam

from sskafka.model.buffers import Buffer
from sskafka.records.batch import CorruptBatchError

BLOCK_BYTES = 64 * 1024
"""The blocks that are written here."""

_MAGIC = b"\x04\x22\x4d\x18"
_HEADER = _MAGIC + b"\x60\x40\x82"  # version 1, independent blocks; blocks of 64 KB; header checksum
_FLAGS_AT = 4
_SIZE = Struct("<I")
_STORED = 0x80000000  # this block did not shrink and is kept as it is
_END = bytes(4)

_VERSION_MASK, _VERSION_1 = 0xC0, 0x40
_INDEPENDENT = 0x20
_BLOCK_CHECKSUMS = 0x10
_CONTENT_SIZE = 0x08
_DICTIONARY = 0x01
_BLOCK_BYTES_OF = {4: BLOCK_BYTES, 5: 256 * 1024, 6: 1024 * 1024, 7: 4 * 1024 * 1024}


class FrameHeader(NamedTuple):
    has_own_blocks: bool
    """Each block can be read without the one before."""
    block_bytes_max: int
    checksum_bytes: int
    """Behind each block."""
    size: int


def read_frame_header(data: memoryview) -> FrameHeader:
    if len(data) < len(_HEADER) or data[:_FLAGS_AT] != _MAGIC or data[_FLAGS_AT] & _VERSION_MASK != _VERSION_1:
        raise CorruptBatchError("the lz4 data does not begin with a frame of version 1")
    flags, block_bytes_max = data[_FLAGS_AT], _BLOCK_BYTES_OF.get(data[_FLAGS_AT + 1] >> 4 & 7, 0)
    if not block_bytes_max:
        raise CorruptBatchError(f"the lz4 frame has no such block size: {data[_FLAGS_AT + 1]}")
    optional = (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY else 0)
    return FrameHeader(
        has_own_blocks=bool(flags & _INDEPENDENT) and not flags & _DICTIONARY,
        block_bytes_max=block_bytes_max,
        checksum_bytes=4 if flags & _BLOCK_CHECKSUMS else 0,
        size=len(_HEADER) + optional,
    )


def plain_blocks(data: memoryview, header: FrameHeader) -> Iterator[memoryview]:
    """The blocks decompressed. Each is gone when the next is asked for: they share their room."""
    room = bytearray(header.block_bytes_max)
    for block, is_stored in _blocks(data, header):
        if is_stored:
            yield block
        else:
            size = cramjam.lz4.decompress_block_into(block, room, output_len=header.block_bytes_max)
            yield memoryview(room)[:size]


def _blocks(data: memoryview, header: FrameHeader) -> Iterator[tuple[memoryview, bool]]:
    position, end = header.size, len(data)
    while True:
        if end - position < _SIZE.size:
            raise CorruptBatchError("the lz4 data ends without a last block")
        (word,) = _SIZE.unpack_from(data, position)
        if word == 0:
            return
        position += _SIZE.size
        size = word & ~_STORED
        if size + header.checksum_bytes > end - position:
            raise CorruptBatchError(f"an lz4 block of {size} bytes, but only {end - position} are left")
        yield data[position : position + size], bool(word & _STORED)
        position += size + header.checksum_bytes


def dense_frame(data: Buffer, level: int) -> Buffer:
    """A frame around `data`, compressed more slowly and more densely: by the library's own writer, whose blocks alone
    know levels. Its blocks do not build on each other either."""
    writer = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    writer.compress(data)
    return memoryview(writer.finish())


def frame_pieces(data: Buffer) -> Iterator[Buffer]:
    """A frame around `data`, in blocks that the Java client accepts: it refuses those that build on each other."""
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
