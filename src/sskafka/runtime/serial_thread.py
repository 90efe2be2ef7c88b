"""Computations that are too long for the event loop, one at a time in a thread.

Only one runs at once: a second thread that computes would not be faster, because they share the interpreter, but would
delay the event loop twice as much. The cheapest of those that wait is next, so that a few huge ones do not hold up all
others.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from sskafka.runtime.background import Background

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]
T = TypeVar("T")


class SerialThread:
    def __init__(self, background: Background) -> None:
        self._background = background
        self._waiting: list[tuple[int, int, Work, Done]] = []
        self._order = count()
        self._is_busy = False

    def submit(self, work: Work, done: Done, cost: int) -> None:
        """Run `work` in a thread, then call `done` with its error on the thread of the caller."""
        heappush(self._waiting, (cost, next(self._order), work, done))
        if not self._is_busy:
            self._next()

    async def run(self, compute: Callable[[], T], cost: int) -> T:
        """Return what `compute` returns in a thread."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        results: list[T] = []

        def done(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(results[0])
            else:
                future.set_exception(error)

        self.submit(lambda: results.append(compute()), done, cost)
        return await future

    def _next(self) -> None:
        self._is_busy = bool(self._waiting)
        if self._waiting:
            _, _, work, done = heappop(self._waiting)
            self._background.in_thread(work, lambda error: self._finished(done, error))

    def _finished(self, done: Done, error: BaseException | None) -> None:
        try:
            done(error)
        finally:
            self._next()
