"""Keep the pauses of Python's garbage collector short, however many objects a process has.

A full collection looks at every object of the process, and nothing else runs meanwhile: a broker with 10,000 partitions
paused for 0.2 seconds, again and again while it grew. Objects that have survived a full collection are in use, so they
are excluded from later collections (`gc.freeze`). The next full collection looks at newer objects only.

Frozen objects are freed as before when their last reference goes. Only cycles of them need the collector, such as those
of deleted topics. So now and then the next full collection looks at all objects again.

This is for processes that run a broker and nothing else: it affects all objects of the process. A callback in
`gc.callbacks` would be simpler, but it would run Python code, and so other threads, in the middle of operations on
dictionaries and lists that are otherwise atomic.
"""

import asyncio
import gc
from collections.abc import Callable

LOOK_S = 0.1
"""Interval between two checks of the number of full collections."""
THAW_S = 600.0


class ShortPauses:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._thawed_s = monotonic()
        self._collections = _full_collections()

    def look(self) -> None:
        """Freeze all objects if there was a full collection since the last check."""
        collections = _full_collections()
        if collections == self._collections:
            return
        self._collections = collections
        if self._monotonic() - self._thawed_s >= THAW_S:
            self._thawed_s = self._monotonic()
            gc.unfreeze()
        else:
            gc.freeze()


async def keep_pauses_short() -> None:
    """Check and freeze objects periodically, until cancelled."""
    pauses = ShortPauses(asyncio.get_running_loop().time)
    while True:
        await asyncio.sleep(LOOK_S)
        pauses.look()


def _full_collections() -> int:
    return int(gc.get_stats()[-1]["collections"])
