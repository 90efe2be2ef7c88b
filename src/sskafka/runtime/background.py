"""Background work: turns of the event loop, and threads that wait in system calls."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Protocol


class Background(Protocol):
    """Runs work for which the caller does not wait."""

    def soon(self, work: Callable[[], None]) -> None:
        """Run `work` on this thread, after the current turn."""
        ...

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Run `work` on another thread, then call `done` with its error on this one."""
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
