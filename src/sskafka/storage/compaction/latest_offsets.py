"""The last offset of each key: a hash table of fixed size, 24 bytes for each key of any length.

    key digest, upper half   lower half   offset + 1, or 0 in a free slot
            8 bytes           8 bytes      8 bytes

A key is identified by sixteen bytes of BLAKE2b; collisions are not expected. The number of slots is prime, so that
every step of the double hashing visits all of them. The table is kept in flat arrays: a dict would take seven times the
memory.
"""

from array import array
from hashlib import blake2b
from struct import Struct

SLOT_BYTES = 24
NOT_FOUND = -1
_SLOTS_MIN = 17
_two_words = Struct("=QQ").unpack


class LatestOffsets:
    __slots__ = ("_high", "_low", "_offsets", "_slots", "count", "count_max")

    def __init__(self, memory_bytes: int, load_factor: float, keys_expected: int) -> None:
        """Size the table for the expected keys, but no larger than the memory allows."""
        allowed = int(memory_bytes) // SLOT_BYTES
        wanted = int(keys_expected / min(load_factor, 0.75)) + _SLOTS_MIN
        self._slots = prime_up_to(max(min(allowed, wanted), _SLOTS_MIN))
        self.count_max = max(int(self._slots * load_factor), 1)
        self.count = 0
        self._high = array("Q", (0,)) * self._slots
        self._low = array("Q", (0,)) * self._slots
        self._offsets = array("q", (0,)) * self._slots

    @property
    def is_full(self) -> bool:
        return self.count >= self.count_max

    def has_room_for(self, keys: int) -> bool:
        return self.count + keys <= self.count_max

    @property
    def utilization(self) -> float:
        return self.count / self._slots

    def put(self, key: bytes, offset: int) -> None:
        """Set the key's offset. Offsets grow from call to call, so the last call wins."""
        high, low = _two_words(blake2b(key, digest_size=16).digest())
        offsets, slot = self._offsets, high % self._slots
        if offsets[slot] and (self._low[slot] != low or self._high[slot] != high):
            slot = self._slot_of(high, low)
        if not offsets[slot]:
            self.count += 1
            self._high[slot], self._low[slot] = high, low
        offsets[slot] = offset + 1

    def get(self, key: bytes) -> int:
        high, low = _two_words(blake2b(key, digest_size=16).digest())
        return self._offsets[self._slot_of(high, low)] - 1

    def _slot_of(self, high: int, low: int) -> int:
        """Return the slot of the digest, or the free slot where it belongs. The table is never full."""
        slots, offsets = self._slots, self._offsets
        slot = high % slots
        if not offsets[slot] or (self._low[slot] == low and self._high[slot] == high):
            return slot
        step = low % (slots - 1) + 1
        while True:
            slot = (slot + step) % slots
            if not offsets[slot] or (self._low[slot] == low and self._high[slot] == high):
                return slot

    def mark(self, bits: bytearray, first_offset: int, end_offset: int) -> None:
        """Set the bit of every stored offset below `end_offset`. The first bit is that of `first_offset`."""
        for stored in self._offsets:
            if 0 < stored <= end_offset:
                bit = stored - 1 - first_offset
                bits[bit >> 3] |= 1 << (bit & 7)


def prime_up_to(number: int) -> int:
    """Return the largest prime that is at most `number`."""
    while not _is_prime(number):
        number -= 1
    return number


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
