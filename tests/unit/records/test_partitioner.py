import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2

from sskafka.records.partitioner import murmur2, partition_for_key

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
