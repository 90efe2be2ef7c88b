"""Decode frames of another library, with all optional parts of a frame."""

import lz4.frame
import pytest

from sskafka.records.batch import CorruptBatchError
from sskafka.records.compression import Compression, compress, decompress
from sskafka.records.lz4_frame import read_frame_header

DATA = b"".join(b"%d," % (number * number) for number in range(60_000))
NOISE = bytes((number * number * 7919 >> 5) & 0xFF for number in range(70_000))
SIZES = (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX256KB, lz4.frame.BLOCKSIZE_MAX4MB)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("data", [b"", b"x", DATA, NOISE], ids=["nothing", "a byte", "text", "noise"])
def test_all_kinds_of_frames_are_decompressed(data: bytes, size: int, linked: bool, checksums: bool) -> None:
    frame = lz4.frame.compress(
        data, block_size=size, block_linked=linked, content_checksum=checksums, block_checksum=checksums
    )
    assert bytes(decompress(Compression.LZ4, frame)) == data


def test_only_independent_blocks_are_decompressed_individually() -> None:
    assert read_frame_header(memoryview(lz4.frame.compress(DATA, block_linked=False))).has_independent_blocks
    assert not read_frame_header(memoryview(lz4.frame.compress(DATA, block_linked=True))).has_independent_blocks


@pytest.mark.parametrize("position", [0, 4, 5])
def test_an_invalid_header_is_corrupt(position: int) -> None:
    frame = bytearray(compress(Compression.LZ4, DATA))
    frame[position] = 0
    with pytest.raises(CorruptBatchError):
        decompress(Compression.LZ4, frame)


def test_every_truncated_frame_is_corrupt() -> None:
    frame = bytes(compress(Compression.LZ4, b"abc" * 100))
    for length in range(len(frame)):
        with pytest.raises(CorruptBatchError):
            decompress(Compression.LZ4, frame[:length])
