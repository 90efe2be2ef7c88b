"""Long computations on the thread of the event loop, one after the other, in slices.

    a slice of SLICE_MS ──► a pause, PAUSE_FACTOR times as long ──► the next slice ──► ...

No turn of the loop is long, and all computations together take at most a fifth of the loop's time, however many there
are. A computation is a generator (model/computation.py). Each has a key; while one with the same key waits or runs,
further ones are ignored.
"""

import logging
from collections.abc import Callable, Hashable
from typing import Final

from sskafka.model.computation import Computation
from sskafka.runtime.background import Background
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import TimerWheel

_log = logging.getLogger(__name__)

SLICE_MS: Final = 2
PAUSE_FACTOR: Final = 4

Begin = Callable[[], Computation[None]]


class SlicedWork:
    def __init__(self, clock: Clock, wheel: TimerWheel, background: Background) -> None:
        self._clock = clock
        self._wheel = wheel
        self._background = background
        self._waiting: dict[Hashable, Begin] = {}
        self._current: tuple[Hashable, Computation[None]] | None = None
        self._is_scheduled = False
        self._is_stopped = False

    def put(self, key: Hashable, begin: Begin) -> None:
        """Run the computation that `begin` returns, which is called when its first slice comes."""
        if self._is_stopped or key in self._waiting or (self._current is not None and self._current[0] == key):
            return
        self._waiting[key] = begin
        if not self._is_scheduled:
            self._is_scheduled = True
            self._background.soon(self._slice)

    def stop(self) -> None:
        """Drop all computations. One that runs ends where it is."""
        self._is_stopped = True
        self._waiting.clear()
        self._current = None

    def __len__(self) -> int:
        return len(self._waiting) + (self._current is not None)

    def _slice(self) -> None:
        began_ms = self._clock.monotonic_ms()
        while len(self) and self._clock.monotonic_ms() < began_ms + SLICE_MS:
            self._step()
        self._is_scheduled = len(self) > 0
        if self._is_scheduled:
            pause_ms = PAUSE_FACTOR * (self._clock.monotonic_ms() - began_ms)
            self._wheel.schedule(round(pause_ms), self._slice)

    def _step(self) -> None:
        if self._current is None:
            key = next(iter(self._waiting))
            self._current = key, self._waiting.pop(key)()
        _, steps = self._current
        try:
            next(steps)
        except StopIteration:
            self._current = None
        except Exception:  # a computation that fails must not keep the others from running
            _log.exception("a computation failed")
            self._current = None
