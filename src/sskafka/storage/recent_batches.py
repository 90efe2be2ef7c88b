"""Where the newest batches of a segment lie, in memory, so that readers at the tail walk nothing.

Remembers the last offset and the position of each; bounded, the oldest half is forgotten when it is full.
"""

from array import array
from bisect import bisect_left

_BATCHES_MAX = 1024


class RecentBatches:
    __slots__ = ("_last_offsets", "_positions", "floor")

    def __init__(self, floor: int) -> None:
        """`floor`: the last offset before what will be remembered."""
        self.floor = floor
        self._last_offsets = array("q")
        self._positions = array("q")

    def add(self, last_offset: int, position: int) -> None:
        self._last_offsets.append(last_offset)
        self._positions.append(position)
        if len(self._positions) == _BATCHES_MAX:
            self._forget_half()

    def position_of(self, offset: int) -> int | None:
        """Position of the first batch that ends at `offset` or later; None when that is not remembered."""
        if offset <= self.floor:
            return None
        place = bisect_left(self._last_offsets, offset)
        return self._positions[place] if place < len(self._positions) else None

    def clear(self, floor: int) -> None:
        self.__init__(floor)  # type: ignore[misc]

    def _forget_half(self) -> None:
        half = _BATCHES_MAX // 2
        self.floor = self._last_offsets[half - 1]
        del self._last_offsets[:half]
        del self._positions[:half]
