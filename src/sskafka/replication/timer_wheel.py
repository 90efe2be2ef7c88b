"""Deadlines of parked requests: many, nearly all cancelled, none needed to the millisecond.

Timers are kept in buckets of one tick; one callback of the loop serves the whole wheel and sleeps while it
is empty. Cancelling forgets the callback at once, so a bucket holds no reference to what was parked.
"""

from collections.abc import Callable

from sskafka.model.clock import Clock

TICK_MS = 5


class Timer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class TimerWheel:
    def __init__(self, clock: Clock, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        self._clock = clock
        self._call_later = call_later
        self._buckets: dict[int, list[Timer]] = {}
        self._armed_tick: int | None = None

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back no earlier than `delay_ms` from now, at most a tick and a turn of the loop later."""
        timer = Timer(callback)
        tick = int(self._clock.monotonic_ms() + delay_ms) // TICK_MS + 1
        self._buckets.setdefault(tick, []).append(timer)
        if self._armed_tick is None or tick < self._armed_tick:
            self._arm(tick)
        return timer

    def _arm(self, tick: int) -> None:
        self._armed_tick = tick
        delay_ms = tick * TICK_MS - self._clock.monotonic_ms()
        self._call_later(max(0.0, delay_ms / 1000), lambda: self._fire(tick))

    def _fire(self, armed_tick: int) -> None:
        if armed_tick != self._armed_tick:
            return  # an earlier timer came in between and armed anew
        self._armed_tick = None
        now_tick = int(self._clock.monotonic_ms()) // TICK_MS
        for tick in sorted(tick for tick in self._buckets if tick <= now_tick):
            for timer in self._buckets.pop(tick):
                if timer.callback is not None:
                    callback, timer.callback = timer.callback, None
                    callback()
        if self._buckets and self._armed_tick is None:
            self._arm(min(self._buckets))
