"""Background work on an asyncio loop: turns of the loop, and threads that sit in system calls."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor


class LoopBackground:
    def __init__(self, loop: asyncio.AbstractEventLoop, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor

    def soon(self, work: Callable[[], None]) -> None:
        self._loop.call_soon(work)

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        future = self._loop.run_in_executor(self._executor, work)
        future.add_done_callback(lambda finished: None if finished.cancelled() else done(finished.exception()))
