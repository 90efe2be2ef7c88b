"""The partition of a keyed record: the hash of the key, made positive, modulo the number of partitions.

murmur2    MurmurHash2 with Kafka's seed, as in Kafka's own clients: all of them map a key to the same partition
murmur3    MurmurHash3 (x86, 32 bits) with seed 0, as ADR-0011 specifies
"""

from collections.abc import Callable
from struct import unpack_from
from typing import TypeAlias

KeyHash: TypeAlias = Callable[[bytes], int]
"""Maps the bytes of a key to an unsigned 32-bit number."""

_MASK = 0xFFFFFFFF

_SEED_2 = 0x9747B28C
_MULTIPLIER_2 = 0x5BD1E995

_MULTIPLIER_3A, _MULTIPLIER_3B = 0xCC9E2D51, 0x1B873593
_STEP_3 = 0xE6546B64
_FINAL_3A, _FINAL_3B = 0x85EBCA6B, 0xC2B2AE35


def murmur2(data: bytes) -> int:
    length = len(data)
    hashed = (_SEED_2 ^ length) & _MASK
    for word in unpack_from(f"<{length // 4}I", data):
        mixed = (word * _MULTIPLIER_2) & _MASK
        mixed = ((mixed ^ (mixed >> 24)) * _MULTIPLIER_2) & _MASK
        hashed = ((hashed * _MULTIPLIER_2) & _MASK) ^ mixed
    tail = data[length & ~3 :]
    if tail:
        hashed = ((hashed ^ int.from_bytes(tail, "little")) * _MULTIPLIER_2) & _MASK
    hashed = ((hashed ^ (hashed >> 13)) * _MULTIPLIER_2) & _MASK
    return hashed ^ (hashed >> 15)


def murmur3(data: bytes, seed: int = 0) -> int:
    hashed = seed
    for word in unpack_from(f"<{len(data) // 4}I", data):
        hashed = _rotated(hashed ^ _mixed_3(word), 13)
        hashed = (hashed * 5 + _STEP_3) & _MASK
    tail = data[len(data) & ~3 :]
    if tail:
        hashed ^= _mixed_3(int.from_bytes(tail, "little"))
    hashed ^= len(data)
    hashed = ((hashed ^ (hashed >> 16)) * _FINAL_3A) & _MASK
    hashed = ((hashed ^ (hashed >> 13)) * _FINAL_3B) & _MASK
    return hashed ^ (hashed >> 16)


def _mixed_3(word: int) -> int:
    return (_rotated((word * _MULTIPLIER_3A) & _MASK, 15) * _MULTIPLIER_3B) & _MASK


def _rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & _MASK


KEY_HASHES: dict[str, KeyHash] = {"murmur2": murmur2, "murmur3": murmur3}
"""Hash functions by the values of `partitioner.hash`."""


def partition_for_key(key: bytes, partition_count: int, key_hash: KeyHash = murmur2) -> int:
    return (key_hash(key) & 0x7FFFFFFF) % partition_count
