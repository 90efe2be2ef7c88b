"""The partition of a key: MurmurHash2 modulo the number of partitions, as in Kafka's own clients.

This is a copy, because the scripts run without the sskafka package.
"""

SEED = 0x9747B28C
FACTOR = 0x5BD1E995
BITS_32 = 0xFFFFFFFF


def partition_number(key: str, partition_count: int) -> int:
    """Return the partition number, from 1 to `partition_count`."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partition_count + 1


def murmur2(data: bytes) -> int:
    whole = len(data) - len(data) % 4
    state = SEED ^ len(data)
    for start in range(0, whole, 4):
        word = _times(int.from_bytes(data[start : start + 4], "little"))
        state = _times(state) ^ _times(word ^ word >> 24)
    if whole < len(data):
        state = _times(state ^ int.from_bytes(data[whole:], "little"))
    state = _times(state ^ state >> 13)
    return state ^ state >> 15


def _times(number: int) -> int:
    return number * FACTOR & BITS_32
