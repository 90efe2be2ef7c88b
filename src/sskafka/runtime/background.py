"""Background work: turns of the event loop, and threads that wait in system calls."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Protocol

from sskafka.runtime.sync_threads import sync_side_by_side


class Background(Protocol):
    """Runs work for which the caller does not wait."""

    def soon(self, work: Callable[[], None]) -> None:
        """Run `work` on this thread, after the current turn."""
        ...

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Run `work` on another thread, then call `done` with its error on this one."""
        ...


class SyncBackground(Background, Protocol):
    """Also syncs many files at the same time."""

    def side_by_side(self, syncs: Iterable[Callable[[], None]]) -> None:
        """Run many syncs at the same time and return after the last one; raise the first error.

        Called by work in a thread."""
        ...


class LoopBackground:
    def __init__(self, loop: asyncio.AbstractEventLoop, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor

    def soon(self, work: Callable[[], None]) -> None:
        self._loop.call_soon(work)

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        future = self._loop.run_in_executor(self._executor, work)
        future.add_done_callback(lambda finished: None if finished.cancelled() else done(finished.exception()))

    def side_by_side(self, syncs: Iterable[Callable[[], None]]) -> None:
        sync_side_by_side(syncs)
