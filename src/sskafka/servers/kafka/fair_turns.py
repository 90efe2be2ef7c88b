"""Share the turns of the event loop among connections that have more to do than fits into a turn.

    a connection handles requests for SLICE_NS, then puts itself at the end of the queue
    each turn of the loop serves the queue from its front, for TURN_NS, then looks for input of other connections

So a connection that has sent thousands of requests at once is served in slices, in between those of all others, and a
client that sends one request now and then waits for one turn at most. This costs nothing while the queue is empty.
"""

import asyncio
from collections import deque
from time import perf_counter_ns
from typing import Final, Protocol

SLICE_NS = 1_000_000
TURN_NS: Final = 4_000_000
_NEVER_NS: Final = 1 << 63


class InTurns(Protocol):
    def take_turn(self) -> None:
        """Work for at most SLICE_NS; put yourself into the queue again if there is more to do."""
        ...


class FairTurns:
    def __init__(self) -> None:
        self.over_ns = _NEVER_NS
        """When the time of the current turn is used up; from then on connections handle one request at a time."""
        self._queue: deque[InTurns] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def put(self, work: InTurns) -> None:
        """Run `work` in a later turn. It must not be in the queue already."""
        self._queue.append(work)
        if self.over_ns == _NEVER_NS:
            self._continue_next_turn()

    def _continue_next_turn(self) -> None:
        assert self._loop is not None
        self.over_ns = perf_counter_ns() + TURN_NS
        self._loop.call_soon(self._serve)

    def _serve(self) -> None:
        queue, over_ns = self._queue, perf_counter_ns() + TURN_NS
        self.over_ns = over_ns
        for _ in range(len(queue)):
            queue.popleft().take_turn()
            if perf_counter_ns() >= over_ns:
                break
        if queue:
            self._continue_next_turn()
        else:
            self.over_ns = _NEVER_NS
