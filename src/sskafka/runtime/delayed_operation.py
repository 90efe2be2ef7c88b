"""An operation that completes when partitions have reached offsets or a timeout expires: Kafka's DelayedOperation.

    begin ──► wait_for (a partition, an offset) ... ──► all reached or failed ──► complete(outcomes)
                                                    ──► timeout ────────────────► complete(outcomes)
                                                    ──► cancel: no callback

`complete` is called once, with an outcome for each wait in the order of their numbers: NONE, the error that made the
wait fail (leadership moved, the topic was deleted), NOT_ENOUGH_REPLICAS_AFTER_APPEND, or REQUEST_TIMED_OUT. All waits
for a high watermark, a flush or a log start offset use this class: Produce, coordinators, transaction markers,
DeleteRecords and the ADR server.

The `OffsetWaiters` of a partition correspond to Kafka's purgatory. They keep a wait that has timed out until its
offset is reached, and ignore it then.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from sskafka.model.errors import ErrorCode
from sskafka.model.native import mypyc_attr
from sskafka.runtime.timer_wheel import Timer, TimerWheel

Released = Callable[[ErrorCode], None]


class OffsetWaiters:
    """Waits for a partition to reach offsets: a heap, so that an advance touches only the waits that it completes."""

    __slots__ = ("_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Released]] = []
        self._order = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, offset: int, released: Released) -> None:
        heappush(self._heap, (offset, next(self._order), released))

    def release(self, reached_offset: int, outcome: ErrorCode = ErrorCode.NONE) -> None:
        """Complete all waits for `reached_offset` or less."""
        heap = self._heap
        while heap and heap[0][0] <= reached_offset:
            heappop(heap)[2](outcome)

    def fail(self, error: ErrorCode) -> None:
        """Fail all waits: the partition was deleted or its leadership moved."""
        heap, self._heap = self._heap, []
        for _, _, released in heap:
            released(error)


class InSync(Protocol):
    def has_enough_in_sync(self) -> bool: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation:
    __slots__ = ("_open", "_timer", "outcomes")

    def begin(self, count: int, timers: TimerWheel | None = None, timeout_ms: int = 0) -> None:
        """Expect `count` waits. Without `timers` the caller handles the timeout."""
        self.outcomes = [ErrorCode.REQUEST_TIMED_OUT] * count
        self._open = count
        self._timer: Timer | None = None if timers is None else timers.schedule(timeout_ms, self.expire)

    def wait_for(self, number: int, waiters: OffsetWaiters, offset: int, in_sync: InSync | None = None) -> None:
        """Add a wait. `in_sync`: the partition that must also have min.insync.replicas when the offset is reached."""
        waiters.add(offset, partial(self._reached, number, in_sync))

    def _reached(self, number: int, in_sync: InSync | None, outcome: ErrorCode) -> None:
        if not self._open:
            return  # it has timed out or was cancelled
        if outcome is ErrorCode.NONE and in_sync is not None and not in_sync.has_enough_in_sync():
            outcome = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        self.outcomes[number] = outcome
        self._open -= 1
        if not self._open:
            if self._timer is not None:
                self._timer.cancel()
            self.complete(self.outcomes)

    def expire(self) -> None:
        if self._open:
            self._open = 0
            self.complete(self.outcomes)

    def cancel(self) -> None:
        self._open = 0
        if self._timer is not None:
            self._timer.cancel()

    def complete(self, outcomes: list[ErrorCode]) -> None:
        raise NotImplementedError


class DelayedCallback(DelayedOperation):
    """One wait, whose outcome is passed to a callback."""

    __slots__ = ("_completed",)

    def __init__(self, completed: Callable[[ErrorCode], None]) -> None:
        self._completed = completed

    def complete(self, outcomes: list[ErrorCode]) -> None:
        self._completed(outcomes[0])


class DelayedFuture(DelayedOperation):
    """Outcomes that can be awaited."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[list[ErrorCode]] = asyncio.get_running_loop().create_future()

    def complete(self, outcomes: list[ErrorCode]) -> None:
        if not self.future.done():
            self.future.set_result(outcomes)
