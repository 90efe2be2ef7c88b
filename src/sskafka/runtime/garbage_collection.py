"""Keep the pauses of Python's garbage collector short, however many objects a process has.

A full collection looks at every object of the process, and nothing else runs at that time: a broker with 10,000
partitions paused for 0.2 seconds, again and again while it grew. Objects that have survived a full collection are in
use, so they are excluded from later collections (`gc.freeze`). The next full collection looks at newer objects only.
Cycles that become garbage after they were frozen stay for long, so requests must not be part of a cycle when they are
done.

How long such a collection takes depends on how many objects are created before the next one. By default these are
77,000, which took 35 to 60 ms in a broker with 10,000 partitions. A lower threshold makes
collections more frequent and short. In total they take less time, because fewer objects are examined twice.

Frozen objects are freed as before when their last reference goes. Only cycles of them need the collector. So the next
full collection looks at all objects again if the process has grown by half since the last such collection, and at most
every 10 minutes. Garbage is then at most a third of all objects. A process that does not grow is never examined as a
whole again, which took 20 ms with 150,000 objects and 230 ms with 1,100,000.

This is for processes that run a broker and nothing else: it affects all objects of the process. A callback in
`gc.callbacks` would be simpler, but it would run Python code, and so other threads, in the middle of operations on
dictionaries and lists that are otherwise atomic.
"""

import asyncio
import gc
import sys
from collections.abc import Callable

LOOK_S = 0.1
"""Interval between two checks of the number of full collections."""
OLDEST_THRESHOLD = 3
"""Collections of the middle generation before a full collection; Python's default is 10."""
THAW_S = 600.0
GROWTH = 1.5


class ShortPauses:
    def __init__(
        self, monotonic: Callable[[], float], allocated_blocks: Callable[[], int] = sys.getallocatedblocks
    ) -> None:
        """`allocated_blocks` returns the number of memory blocks in use: a cheap measure of how much the process has
        grown."""
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, OLDEST_THRESHOLD)
        self._monotonic = monotonic
        self._allocated_blocks = allocated_blocks
        self._thawed_s = monotonic()
        self._is_thawed = True
        self._blocks = 0
        self._collections = _full_collections()

    def look(self) -> None:
        """Freeze all objects if there was a full collection since the last check."""
        collections = _full_collections()
        if collections == self._collections:
            return
        self._collections = collections
        if self._is_thawed:  # objects that still exist now are in use
            self._is_thawed, self._blocks = False, self._allocated_blocks()
        now_s = self._monotonic()
        if now_s - self._thawed_s >= THAW_S and self._allocated_blocks() >= GROWTH * self._blocks:
            self._thawed_s, self._is_thawed = now_s, True
            gc.unfreeze()
        else:
            gc.collect()  # cycles that became garbage since the full collection must not be frozen
            gc.freeze()
            self._collections = _full_collections()


async def keep_pauses_short() -> None:
    """Check and freeze objects periodically, until cancelled."""
    pauses = ShortPauses(asyncio.get_running_loop().time)
    while True:
        await asyncio.sleep(LOOK_S)
        pauses.look()


def _full_collections() -> int:
    return int(gc.get_stats()[-1]["collections"])
