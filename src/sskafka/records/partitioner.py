"""Which partition a keyed record belongs to: the choice that Kafka's own clients make.

The hash is MurmurHash2 (32 bits, Kafka's seed) over the key's bytes:
a key lands in the same partition whoever sends it.
"""

from struct import unpack_from

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_for_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def murmur2(data: bytes) -> int:
    """As an unsigned number of 32 bits."""
    length = len(data)
    hashed = (_SEED ^ length) & _MASK
    for word in unpack_from(f"<{length // 4}I", data):
        mixed = (word * _MULTIPLIER) & _MASK
        mixed = ((mixed ^ (mixed >> 24)) * _MULTIPLIER) & _MASK
        hashed = ((hashed * _MULTIPLIER) & _MASK) ^ mixed
    tail = data[length & ~3 :]
    if tail:
        hashed = ((hashed ^ int.from_bytes(tail, "little")) * _MULTIPLIER) & _MASK
    hashed = ((hashed ^ (hashed >> 13)) * _MULTIPLIER) & _MASK
    return hashed ^ (hashed >> 15)
