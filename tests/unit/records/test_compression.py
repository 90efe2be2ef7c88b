import gzip
from random import Random

import cramjam
import pytest
from aiokafka.codec import lz4_decode, snappy_decode, snappy_encode, zstd_decode

from sskafka.records.batch import CorruptBatchError
from sskafka.records.compression import Compression, DecompressedTooLargeError, compress, decompress

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
SAMPLES = [
    b"",
    b"a",
    bytes(range(256)) * 4,
    b"repeat " * 50_000,
    bytes((i * i * 7919 >> 5) & 0xFF for i in range(70_000)),
]


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", SAMPLES, ids=len)
def test_round_trip(codec: Compression, data: bytes) -> None:
    assert bytes(decompress(codec, bytes(compress(codec, data)), len(data) or 1)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_memoryviews_are_accepted(codec: Compression) -> None:
    data = memoryview(bytearray(b"some data " * 100))
    assert bytes(decompress(codec, memoryview(compress(codec, data)))) == data


@pytest.mark.parametrize("data", SAMPLES[1:], ids=len)
def test_other_libraries_decompress_our_data(data: bytes) -> None:
    assert gzip.decompress(compress(Compression.GZIP, data)) == data
    assert bytes(snappy_decode(bytes(compress(Compression.SNAPPY, data)))) == data
    assert bytes(lz4_decode(bytes(compress(Compression.LZ4, data)))) == data
    assert bytes(zstd_decode(bytes(compress(Compression.ZSTD, data)))) == data


def test_lz4_blocks_are_independent_as_java_requires() -> None:
    flags = compress(Compression.LZ4, b"data")[4]
    assert flags >> 6 == 1, "frame version"
    assert flags & 0x20, "block independence"


def test_snappy_is_decompressed_raw_and_in_both_framings() -> None:
    data = b"snap " * 20_000
    assert bytes(decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data)))) == data
    assert bytes(decompress(Compression.SNAPPY, bytes(snappy_encode(data, xerial_compatible=True)))) == data


def test_linked_lz4_blocks_are_decompressed() -> None:
    data = bytes(range(256)) * 1000
    assert bytes(decompress(Compression.LZ4, bytes(cramjam.lz4.compress(data)))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_the_size_limit_is_exact(codec: Compression) -> None:
    packed = bytes(compress(codec, bytes(1_000_000)))
    assert len(decompress(codec, packed, 1_000_000)) == 1_000_000
    with pytest.raises(DecompressedTooLargeError, match=f"{codec.name.lower()} data decompresses to more than"):
        decompress(codec, packed, 999_999)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"neither this nor that"])
def test_invalid_data_is_corrupt(codec: Compression, data: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, data)


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_streams_are_corrupt(codec: Compression) -> None:
    packed = bytes(compress(codec, bytes(range(256)) * 10))
    with pytest.raises(CorruptBatchError):
        decompress(codec, packed[: len(packed) // 2])


def test_a_wrong_xerial_block_size_is_corrupt() -> None:
    header = bytes(compress(Compression.SNAPPY, b""))
    for tail in (b"\x00\x00", b"\x00\x00\x00\x09abc", b"\xff\xff\xff\xff"):
        with pytest.raises(CorruptBatchError):
            decompress(Compression.SNAPPY, header + tail)


def test_names() -> None:
    assert Compression.named("zstd") is Compression.ZSTD
    assert Compression.named("uncompressed") is Compression.NONE
    with pytest.raises(ValueError, match="no compression 'rar'; choose one of none, gzip"):
        Compression.named("rar")


@pytest.mark.parametrize(
    ("codec", "low", "high"),
    [(Compression.GZIP, 1, 9), (Compression.LZ4, 9, 17), (Compression.ZSTD, -50, 19)],
)
def test_higher_levels_compress_better(codec: Compression, low: int, high: int) -> None:
    chosen = Random(3)
    words = [bytes(chosen.choices(b"abcdefghij", k=chosen.randint(3, 9))) for _ in range(400)]
    data = b" ".join(chosen.choice(words) for _ in range(30_000))
    quick, dense = (bytes(compress(codec, data, level)) for level in (low, high))
    assert len(dense) < len(quick)
    assert bytes(decompress(codec, quick)) == bytes(decompress(codec, dense)) == data


@pytest.mark.parametrize(("codec", "level"), [(Compression.GZIP, -1), (Compression.LZ4, 9), (Compression.ZSTD, 3)])
def test_default_levels_are_kafkas(codec: Compression, level: int) -> None:
    data = bytes(range(256)) * 40
    assert bytes(compress(codec, data, level)) == bytes(compress(codec, data))
