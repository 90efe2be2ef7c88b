"""Who waits for a partition to reach an offset: a heap, so that an advance touches only those it releases."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from sskafka.model.errors import ErrorCode

Released = Callable[[ErrorCode], None]


class OffsetWaiters:
    __slots__ = ("_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Released]] = []
        self._order = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, offset: int, released: Released) -> None:
        heappush(self._heap, (offset, next(self._order), released))

    def release(self, reached_offset: int, outcome: ErrorCode = ErrorCode.NONE) -> None:
        """Call everyone who waits for `reached_offset` or less."""
        heap = self._heap
        while heap and heap[0][0] <= reached_offset:
            heappop(heap)[2](outcome)

    def fail(self, error: ErrorCode) -> None:
        """The partition was deleted or its leadership moved: nobody may wait here any longer."""
        heap, self._heap = self._heap, []
        for _, _, released in heap:
            released(error)
