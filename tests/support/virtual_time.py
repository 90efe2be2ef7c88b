"""Time that passes only when nothing is left to do: callbacks run in the order of their times, then of their making."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

START_MS = 1_700_000_000_000


class VirtualTime:
    """A clock and a loop in one."""

    def __init__(self) -> None:
        self.elapsed_ms = 0.0
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def now_ms(self) -> int:
        return START_MS + int(self.elapsed_ms)

    def monotonic_ms(self) -> float:
        return self.elapsed_ms

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        heappush(self._calls, (self.elapsed_ms + delay_s * 1000, next(self._order), call))

    def call_soon(self, call: Callable[[], None]) -> None:
        self.call_later(0, call)

    def step(self) -> None:
        self.elapsed_ms, _, call = heappop(self._calls)
        call()

    def run_for(self, duration_ms: float, after_each: Callable[[], None] = lambda: None) -> None:
        end_ms = self.elapsed_ms + duration_ms
        while self._calls and self._calls[0][0] <= end_ms:
            self.step()
            after_each()
        self.elapsed_ms = end_ms

    def run_until(self, condition: Callable[[], bool], at_most_ms: float = 60_000) -> None:
        end_ms = self.elapsed_ms + at_most_ms
        while not condition():
            assert self._calls, "nothing is left to happen"
            assert self._calls[0][0] <= end_ms, f"not so within {at_most_ms} ms"
            self.step()
