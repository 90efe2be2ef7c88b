"""The timers of one shard on the broker's timer wheel.

Sessions are renewed with every heartbeat and seldom expire. So postponing a deadline does not touch the wheel: the
existing timer fires at its old time, finds that the deadline is later, and is set again. Timers that are due while the
log cannot be written wait until it can.
"""

from collections.abc import Callable, Hashable
from typing import Any

from sskafka.model.coordination import CoordinatorResult
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import Timer, TimerWheel

Due = Callable[[int], CoordinatorResult[Any, None]]

RETRY_MS = 500


class _Deadline:
    __slots__ = ("at_ms", "due", "fires_at_ms", "timer")

    def __init__(self, at_ms: float, due: Due) -> None:
        self.at_ms = at_ms
        self.fires_at_ms = at_ms
        self.due = due
        self.timer: Timer | None = None


class CoordinatorTimers:
    def __init__(
        self, wheel: TimerWheel, clock: Clock, run: Callable[[Due], None], may_run: Callable[[], bool]
    ) -> None:
        self._wheel = wheel
        self._clock = clock
        self._run = run
        self._may_run = may_run
        self._deadlines: dict[Hashable, _Deadline] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._deadlines

    def schedule(self, key: Hashable, delay_ms: int, due: Due) -> None:
        at_ms = self._clock.monotonic_ms() + delay_ms
        deadline = self._deadlines.get(key)
        if deadline is not None and at_ms >= deadline.fires_at_ms:
            deadline.at_ms, deadline.due = at_ms, due
            return
        self.cancel(key)
        self._deadlines[key] = deadline = _Deadline(at_ms, due)
        self._arm(key, deadline, delay_ms)

    def cancel(self, key: Hashable) -> None:
        deadline = self._deadlines.pop(key, None)
        if deadline is not None and deadline.timer is not None:
            deadline.timer.cancel()

    def cancel_all(self) -> None:
        for key in list(self._deadlines):
            self.cancel(key)

    def _arm(self, key: Hashable, deadline: _Deadline, delay_ms: int) -> None:
        deadline.fires_at_ms = deadline.at_ms
        deadline.timer = self._wheel.schedule(delay_ms, lambda: self._fire(key, deadline))

    def _fire(self, key: Hashable, deadline: _Deadline) -> None:
        left_ms = deadline.at_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            self._arm(key, deadline, int(left_ms) + 1)
            return
        if not self._may_run():
            deadline.at_ms = self._clock.monotonic_ms() + RETRY_MS
            self._arm(key, deadline, RETRY_MS)
            return
        del self._deadlines[key]
        self._run(deadline.due)
