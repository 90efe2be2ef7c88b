"""The codecs of record batches.

Kafka's framing differs slightly from the defaults of the codec libraries:

    gzip    a gzip stream
    snappy  xerial framing: [82 'SNAPPY' 0][version 1][compatible 1] then ([int32 size][raw snappy block])...
            librdkafka sends one raw block without framing; both are read, xerial is written
    lz4     an LZ4 frame (lz4_frame.py)
    zstd    a zstd frame

The caller bounds the decompressed size, because a small batch may decompress to gigabytes.
"""

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct

import cramjam

from sskafka.model.buffers import Buffer
from sskafka.records.batch import CorruptBatchError
from sskafka.records.lz4_frame import (
    check_frame,
    decompressed_blocks,
    frame_pieces,
    high_compression_frame,
    read_frame_header,
)

DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024

GZIP_LEVEL_DEFAULT = -1
LZ4_LEVEL_DEFAULT = 9
"""Selects the fast compressor, as in Apache Kafka; all other levels use the slower compressor with the better ratio."""
ZSTD_LEVEL_DEFAULT = 3

_INT32 = Struct(">i")

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024

_CAPACITY_MIN = 64 * 1024
_CAPACITY_GROWTH = 4
_ZSTD_WINDOW_BYTES_MIN = 8 * 1024 * 1024  # the window that every decoder should support, according to the specification
_MAGIC = b"\x28\xb5\x2f\xfd"
_DESCRIPTOR_AT, _FIELDS_AT = 4, 5
_SINGLE_SEGMENT = 0x20
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZES = {1: Struct("<B"), 2: Struct("<H"), 4: Struct("<I"), 8: Struct("<Q")}
_TWO_BYTES_OFFSET = 256  # is added to a content size of two bytes


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def named(cls, name: str) -> "Compression":
        """Return the codec with this config name; the topic config `compression.type` calls none "uncompressed"."""
        try:
            return cls.NONE if name.lower() == "uncompressed" else cls[name.upper()]
        except KeyError:
            names = ", ".join(codec.name.lower() for codec in cls)
            raise ValueError(f"there is no compression {name!r}; choose one of {names}") from None


class DecompressedTooLargeError(CorruptBatchError):
    """The data decompresses to more bytes than the caller allows."""

    def __init__(self, codec: Compression, max_bytes: int) -> None:
        super().__init__(f"{codec.name.lower()} data decompresses to more than the {max_bytes} bytes allowed")


def codec_of(attributes_compression: int) -> Compression:
    """Return the codec in the attributes of a batch."""
    try:
        return Compression(attributes_compression)
    except ValueError:
        raise CorruptBatchError(f"unknown compression type {attributes_compression}") from None


def compress(codec: Compression, data: Buffer, level: int | None = None) -> Buffer:
    """Compress `data`. `level` has the meaning of Kafka's compression.CODEC.level; None is the codec's default."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return memoryview(cramjam.gzip.compress(data, level=None if level == GZIP_LEVEL_DEFAULT else level))
        case Compression.SNAPPY:
            return b"".join(_snappy_pieces(data))
        case Compression.LZ4:
            is_default = level is None or level == LZ4_LEVEL_DEFAULT
            return (
                b"".join(frame_pieces(data)) if is_default else high_compression_frame(data, level or LZ4_LEVEL_DEFAULT)
            )
        case Compression.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level=ZSTD_LEVEL_DEFAULT if level is None else level))


def decompress(codec: Compression, data: Buffer, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Decompress `data`; raise CorruptBatchError for invalid data, DecompressedTooLargeError above `max_bytes`."""
    try:
        match codec:
            case Compression.NONE:
                return data
            case Compression.GZIP:
                return _decompress_growing(cramjam.gzip.decompress_into, codec, data, max_bytes)
            case Compression.SNAPPY:
                return _decompress_snappy(data, max_bytes)
            case Compression.LZ4:
                return _decompress_lz4(data, max_bytes)
            case Compression.ZSTD:
                return _decompress_growing(cramjam.zstd.decompress_into, codec, data, max_bytes)
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"cannot decompress the {codec.name.lower()} data: {error}") from error


def decompress_strictly(codec: Compression, data: Buffer, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Decompress what a producer sent; raise CorruptBatchError, too, for data that some consumers cannot read.

    librdkafka stops at gzip data of several members, and at data after an LZ4 frame."""
    if codec is Compression.GZIP:
        return _decompress_gzip_member(data, max_bytes)
    if codec is Compression.LZ4:
        view = memoryview(data)
        header = read_frame_header(view)
        check_frame(view, header)
        if header.checksum_bytes or header.content_checksum_bytes:  # only the library verifies them
            return _decompress_library(cramjam.lz4.decompress_into, codec, data, max_bytes)
    if codec is Compression.ZSTD and memory_needed(data) > max(max_bytes, _ZSTD_WINDOW_BYTES_MIN):
        raise DecompressedTooLargeError(codec, max_bytes)  # the decoder would allocate the window first
    return decompress(codec, data, max_bytes)


def _decompress_gzip_member(data: Buffer, max_bytes: int) -> Buffer:
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        output = stream.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise CorruptBatchError(f"cannot decompress the gzip data: {error}") from error
    if len(output) > max_bytes:
        raise DecompressedTooLargeError(Compression.GZIP, max_bytes)
    if not stream.eof or stream.unused_data:
        raise CorruptBatchError("the gzip data is not one complete member")
    return output


def _decompress_library(
    decompress_into: Callable[[Buffer, bytearray], int], codec: Compression, data: Buffer, max_bytes: int
) -> bytearray:
    try:
        return _decompress_growing(decompress_into, codec, data, max_bytes)
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"cannot decompress the {codec.name.lower()} data: {error}") from error


def _decompress_growing(
    decompress_into: Callable[[Buffer, bytearray], int], codec: Compression, data: Buffer, max_bytes: int
) -> bytearray:
    """Decompress with a growing output buffer, up to `max_bytes`: the streams do not state their decompressed size."""
    capacity = min(max(len(data) * _CAPACITY_GROWTH, _CAPACITY_MIN), max_bytes)
    while True:
        output = bytearray(capacity)
        try:
            del output[decompress_into(data, output) :]
            return output
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):  # the data is invalid: a larger buffer would not help
                raise
        if capacity == max_bytes:
            raise DecompressedTooLargeError(codec, max_bytes)
        capacity = min(capacity * _CAPACITY_GROWTH, max_bytes)


def _decompress_lz4(data: Buffer, max_bytes: int) -> Buffer:
    view = memoryview(data)
    header = read_frame_header(view)
    if not header.has_independent_blocks:
        return _decompress_growing(cramjam.lz4.decompress_into, Compression.LZ4, data, max_bytes)
    output = bytearray()
    for block in decompressed_blocks(view, header):
        if len(output) + len(block) > max_bytes:
            raise DecompressedTooLargeError(Compression.LZ4, max_bytes)
        output += block
    return output


def _snappy_pieces(data: Buffer) -> Iterator[Buffer]:
    yield _XERIAL_HEADER
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES])
        yield _INT32.pack(len(block))
        yield memoryview(block)


def _decompress_snappy(data: Buffer, max_bytes: int) -> Buffer:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, max_bytes)
    output = bytearray()
    for block in _xerial_blocks(view):
        output += _decompress_snappy_block(block, max_bytes - len(output))
    return output


def _xerial_blocks(view: memoryview) -> Iterator[memoryview]:
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if len(view) - position < _INT32.size:
            raise CorruptBatchError("the snappy data ends within a block size")
        (size,) = _INT32.unpack_from(view, position)
        position += _INT32.size
        if not 0 <= size <= len(view) - position:
            raise CorruptBatchError(f"the snappy block has {size} bytes, but only {len(view) - position} are left")
        yield view[position : position + size]
        position += size


def _decompress_snappy_block(block: memoryview, max_bytes: int) -> Buffer:
    if cramjam.snappy.decompress_raw_len(block) > max_bytes:
        raise DecompressedTooLargeError(Compression.SNAPPY, max_bytes)
    return memoryview(cramjam.snappy.decompress_raw(block))


def memory_needed(data: Buffer) -> int:
    """Return how much memory a zstd decoder needs: the larger of the window and the content size that the header names.

     4  magic
     1  descriptor    bits 6-7 size of the content size, 5 single segment, 0-1 size of the dictionary id
    (1  window)       exponent and mantissa; a single segment has none: its window is as large as the content
    (dictionary id 1, 2 or 4) (content size 1, 2, 4 or 8)"""
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
