"""What a producer compressed must be readable by every consumer, and bounded."""

import gzip

import cramjam
import pytest
import zstandard
from lying_batches import COMPRESSED_LIES, HARMLESS, PAYLOAD

from sskafka.records.batch import CorruptBatchError, read_header
from sskafka.records.compression import (
    Compression,
    DecompressedTooLargeError,
    codec_of,
    compress,
    decompress_strictly,
    memory_needed,
)

MEGABYTE = 1 << 20
CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("name", COMPRESSED_LIES)
def test_lies_of_compressed_data_are_found(name: str) -> None:
    batch = COMPRESSED_LIES[name]
    codec = codec_of(read_header(batch).compression)
    if name in HARMLESS:
        assert bytes(decompress_strictly(codec, batch[61:])) == PAYLOAD
        return
    try:
        data = bytes(decompress_strictly(codec, batch[61:]))
    except CorruptBatchError:
        return
    assert data != PAYLOAD, "the records are checked afterwards"


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 1000, 3 * MEGABYTE])
def test_what_this_package_compresses_is_accepted(codec: Compression, size: int) -> None:
    data = bytes(size)
    assert bytes(decompress_strictly(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_output_is_bounded(codec: Compression) -> None:
    compressed = compress(codec, bytes(3 * MEGABYTE))
    assert len(bytes(decompress_strictly(codec, compressed, 3 * MEGABYTE))) == 3 * MEGABYTE
    with pytest.raises(DecompressedTooLargeError):
        decompress_strictly(codec, compressed, 3 * MEGABYTE - 1)


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
def test_lz4_frames_of_other_clients(linked: bool, checksum: bool) -> None:
    import lz4.frame

    data = PAYLOAD * 5000
    options = {"block_linked": linked, "content_checksum": checksum, "block_checksum": checksum, "store_size": True}
    frame = lz4.frame.compress(data, **options)
    assert bytes(decompress_strictly(Compression.LZ4, frame)) == data
    if checksum:
        with pytest.raises(CorruptBatchError):
            decompress_strictly(Compression.LZ4, frame[:-1] + bytes([frame[-1] ^ 1]))


def test_gzip_of_two_members_is_refused() -> None:
    with pytest.raises(CorruptBatchError, match="one complete member"):
        decompress_strictly(Compression.GZIP, gzip.compress(b"a") + gzip.compress(b"b"))


@pytest.mark.parametrize("size", [0, 10, 255, 256, 300, 65_791, 65_792, 100_000, 3_000_000])
@pytest.mark.parametrize("level", [1, 3, 19])
def test_a_zstd_header_says_the_size(size: int, level: int) -> None:
    data = bytes(size)
    with_size = zstandard.ZstdCompressor(level=level, write_content_size=True).compress(data)
    parameters = zstandard.get_frame_parameters(with_size)
    assert memory_needed(with_size) == max(parameters.content_size, parameters.window_size if size else 0)
    streamed = bytes(cramjam.zstd.compress(data))
    assert memory_needed(streamed) >= min(size, 1024)


def test_a_zstd_window_is_bounded() -> None:
    """A decoder allocates the window before it has seen any data."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=0)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frame = compressor.compress(PAYLOAD) + compressor.flush()
    with pytest.raises(DecompressedTooLargeError):
        decompress_strictly(Compression.ZSTD, frame, 32 * MEGABYTE)


@pytest.mark.parametrize("frame", [b"", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\xe0\x01", b"12345678"])
def test_a_cut_zstd_header_is_corrupt(frame: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        decompress_strictly(Compression.ZSTD, frame)
