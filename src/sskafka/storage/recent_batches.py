"""The positions of a segment's newest batches, in memory, so that readers at the tail need not walk the file.

The last offset and the position of every batch above a floor are kept. The number is bounded: when the list is full,
its older half is dropped and the floor raised.
"""

from array import array
from bisect import bisect_left

NOTHING_KNOWN = 2**63 - 1  # a floor above all offsets
BEYOND = -1  # in place of a position: after the last batch
_BATCHES_MAX = 1024


class RecentBatches:
    __slots__ = ("_last_offsets", "_positions", "floor")

    def __init__(self, floor: int) -> None:
        """`floor`: the last offset that is not remembered. There are no batches above it yet."""
        self.floor = floor
        self._last_offsets = array("q")
        self._positions = array("q")

    def add(self, last_offset: int, position: int) -> None:
        self._last_offsets.append(last_offset)
        self._positions.append(position)
        if len(self._positions) == _BATCHES_MAX:
            self._forget_half()

    def position_of(self, offset: int) -> int | None:
        """Return the position of the first batch that ends at `offset` or later, BEYOND, or None if it is not
        remembered."""
        if offset <= self.floor:
            return None
        index = bisect_left(self._last_offsets, offset)
        return self._positions[index] if index < len(self._positions) else BEYOND

    def clear(self, floor: int) -> None:
        self.floor = floor
        del self._last_offsets[:], self._positions[:]

    def _forget_half(self) -> None:
        half = _BATCHES_MAX // 2
        self.floor = self._last_offsets[half - 1]
        del self._last_offsets[:half]
        del self._positions[:half]
