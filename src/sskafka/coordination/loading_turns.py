"""Turns of the loop for shards that are being loaded: one shard a turn, however many there are.

A broker that starts, or takes over from another, comes to lead dozens of partitions of internal topics at once. Each
takes a few milliseconds of a turn; all of them in every turn would hold up everybody else.
"""

from collections import deque
from collections.abc import Callable

from sskafka.storage.flusher import Background


class LoadingTurns:
    """A Background for loaders."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._waiting: deque[Callable[[], None]] = deque()

    def soon(self, work: Callable[[], None]) -> None:
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._background.soon(self._next)

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self._background.in_thread(work, done)

    def _next(self) -> None:
        work = self._waiting.popleft()
        if self._waiting:
            self._background.soon(self._next)
        work()
