"""Keep the pauses of Python's garbage collector short, however much a process remembers.

A full collection looks at every object of the process, and nothing else runs meanwhile: a broker with 10,000 partitions
paused for 0.3 seconds, again and again while it grew. What has survived a full collection is in use, so the collector
is told to look at it no more (`gc.freeze`). The next full collection looks at newer objects only.

Frozen objects are freed as before when their last reference goes. Only cycles of them need the collector, such as those
of deleted topics. So after THAW_S the next full collection looks at all objects again.

This is for processes that run a broker and nothing else: it affects all objects of the process.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

LONG_NS = 5_000_000
"""Full collections that take longer freeze what has survived them."""
THAW_S = 600.0
_FULL = 2


class ShortPauses:
    """A callback for `gc.callbacks`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._thawed_s = monotonic()
        self._began_ns = 0
        self.frozen = 0
        """How often objects were frozen."""

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] != _FULL:
            return
        if phase == "start":
            if self.frozen and self._monotonic() - self._thawed_s >= THAW_S:
                self._thawed_s = self._monotonic()
                gc.unfreeze()
            self._began_ns = time.perf_counter_ns()
        elif time.perf_counter_ns() - self._began_ns >= LONG_NS:
            gc.freeze()
            self.frozen += 1


def keep_pauses_short() -> None:
    """Do so from now on, and freeze the modules that are imported by now."""
    gc.freeze()
    gc.callbacks.append(ShortPauses())
