"""The bound on the memory of answers to CONSUME: only so many are read and sent at the same time.

A client that does not take its answer keeps its slot while nobody else needs it. When all slots are taken and another
client waits, the connection of the client that has taken nothing for the longest time is closed, but not before
PATIENCE_S: a slow client goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

PATIENCE_S = 2.0


class AnswerSlot:
    """The use of a slot by one connection; `close_connection` must end with the release of the slot."""

    def __init__(self, slots: "AnswerSlots", close_connection: Callable[[], object]) -> None:
        self._slots = slots
        self.close_connection = close_connection
        self.progress_s = 0.0
        self.is_sending = False

    async def __aenter__(self) -> Self:
        await self._slots.acquire(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._slots.release(self)

    def note_progress(self) -> None:
        """The answer is being sent, and the client has taken some of it."""
        self.is_sending = True
        self.progress_s = asyncio.get_running_loop().time()


class AnswerSlots:
    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: set[AnswerSlot] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._check: asyncio.TimerHandle | None = None

    def slot(self, close_connection: Callable[[], object]) -> AnswerSlot:
        return AnswerSlot(self, close_connection)

    async def acquire(self, slot: AnswerSlot) -> None:
        while len(self._taken) >= self._count:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._close_stuck()
            await turn
        self._taken.add(slot)

    def release(self, slot: AnswerSlot) -> None:
        self._taken.discard(slot)
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break

    def _close_stuck(self) -> None:
        """Close the connection that has waited for its client for the longest time, now or when its patience ends."""
        loop = asyncio.get_running_loop()
        self._waiting = deque(turn for turn in self._waiting if not turn.done())
        if self._check is not None:
            self._check.cancel()
            self._check = None
        if not self._waiting:
            return
        stuck = min((slot for slot in self._taken if slot.is_sending), key=lambda slot: slot.progress_s, default=None)
        if stuck is not None and loop.time() - stuck.progress_s >= PATIENCE_S:
            stuck.is_sending = False
            stuck.close_connection()
        self._check = loop.call_later(PATIENCE_S / 4, self._close_stuck)
