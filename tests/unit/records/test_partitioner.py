import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2

from sskafka.records.partitioner import KEY_HASHES, murmur2, murmur3, partition_for_key

# Kafka's own test vectors, as signed numbers.
VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "expected"), VECTORS.items())
def test_published_vectors(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


def test_agrees_with_aiokafka_for_every_tail_length() -> None:
    for length in range(20):
        key = bytes((17 * length + 13 * i) & 0xFF for i in range(length))
        assert murmur2(key) == aiokafka_murmur2(key) & 0xFFFFFFFF


def test_a_negative_hash_stays_in_range() -> None:
    assert partition_for_key(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


# The vectors that implementations of MurmurHash3 (x86, 32 bits) check each other with: data, seed, hash.
VECTORS_3 = [
    (b"", 0, 0),
    (b"", 1, 0x514E28B7),
    (b"", 0xFFFFFFFF, 0x81F16F39),
    (b"\0\0\0\0", 0, 0x2362F9DE),
    (b"\0\0\0", 0, 0x85F0B427),
    (b"\0\0", 0, 0x30F4C306),
    (b"\0", 0, 0x514E28B7),
    (b"\xff\xff\xff\xff", 0, 0x76293B50),
    (b"\x21\x43\x65\x87", 0, 0xF55B516B),
    (b"\x21\x43\x65\x87", 0x5082EDEE, 0x2362F9DE),
    (b"\x21\x43\x65", 0, 0x7E4A8634),
    (b"\x21\x43", 0, 0xA0F7B07A),
    (b"\x21", 0, 0x72661CF4),
    (b"test", 0, 0xBA6BD213),
    (b"test", 0x9747B28C, 0x704B81DC),
    (b"Hello, world!", 0, 0xC0363E43),
    (b"Hello, world!", 0x9747B28C, 0x24884CBA),
    (b"The quick brown fox jumps over the lazy dog", 0, 0x2E4FF723),
    (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
]


@pytest.mark.parametrize(("data", "seed", "expected"), VECTORS_3)
def test_published_vectors_of_murmur3(data: bytes, seed: int, expected: int) -> None:
    assert murmur3(data, seed) == expected


def test_the_hash_selects_the_partition() -> None:
    assert partition_for_key(b"test", 10, KEY_HASHES["murmur3"]) == (0xBA6BD213 & 0x7FFFFFFF) % 10
    assert partition_for_key(b"test", 10, KEY_HASHES["murmur2"]) == partition_for_key(b"test", 10)
