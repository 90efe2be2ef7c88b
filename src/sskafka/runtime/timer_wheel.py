"""Timers for parked requests: there are many, nearly all are cancelled, and none needs millisecond precision.

Timers are kept in buckets of one tick. One callback of the event loop serves the whole wheel, and none is scheduled
while the wheel is empty. Cancelling drops the callback at once, so a bucket holds no reference to the parked request.
Cancelled timers are removed when they are the majority: clients choose timeouts, and may choose weeks.
"""

import logging
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from sskafka.runtime.clock import Clock

_log = logging.getLogger(__name__)

TICK_MS: Final = 5
CANCELLED_MAX: Final = 1_000
"""Cancelled timers that may stay whatever the number of others, so that few timers are not searched again and again."""


class Timer:
    __slots__ = ("_wheel", "callback")

    def __init__(self, wheel: "TimerWheel", callback: Callable[[], None]) -> None:
        self._wheel = wheel
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._wheel.note_cancelled()

    def fire(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            try:
                callback()
            except Exception:  # a failing timer must not keep the others from firing
                _log.exception("a timer failed")


class TimerWheel:
    def __init__(self, clock: Clock, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        self._clock = clock
        self._call_later = call_later
        self._buckets: dict[int, list[Timer]] = {}
        self._ticks: list[int] = []  # a heap of the ticks that have a bucket
        self._armed_tick: int | None = None
        self.size = 0
        """The number of timers in the buckets, cancelled ones included."""
        self._cancelled = 0

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back no earlier than `delay_ms` from now, at most a tick and a turn of the loop later."""
        timer = Timer(self, callback)
        tick = int(self._clock.monotonic_ms() + delay_ms) // TICK_MS + 1
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = []
            heappush(self._ticks, tick)
        bucket.append(timer)
        self.size += 1
        self._be_called_at(tick)
        return timer

    def note_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > CANCELLED_MAX and 2 * self._cancelled > self.size:
            self._remove_cancelled()

    def _remove_cancelled(self) -> None:
        self.size = self._cancelled = 0
        for tick, bucket in list(self._buckets.items()):
            kept = [timer for timer in bucket if timer.callback is not None]
            if kept:
                self._buckets[tick] = kept
                self.size += len(kept)
            else:
                del self._buckets[tick]
        self._ticks = list(self._buckets)
        heapify(self._ticks)

    def _be_called_at(self, tick: int) -> None:
        if self._armed_tick is not None and self._armed_tick <= tick:
            return
        self._armed_tick = tick
        delay_ms = tick * TICK_MS - self._clock.monotonic_ms()
        self._call_later(max(0.0, delay_ms / 1000), lambda: self._fire(tick))

    def _fire(self, armed_tick: int) -> None:
        if armed_tick != self._armed_tick:
            return  # an earlier timer was added in between and armed the wheel again
        self._armed_tick = None
        now_tick = int(self._clock.monotonic_ms()) // TICK_MS
        while self._ticks and self._ticks[0] <= now_tick:
            due = self._buckets.pop(heappop(self._ticks))
            self.size -= len(due)
            self._cancelled -= len([timer for timer in due if timer.callback is None])
            for timer in due:
                timer.fire()
        if self._ticks:
            self._be_called_at(self._ticks[0])
