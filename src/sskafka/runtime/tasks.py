"""The asyncio tasks of a node: background tasks, without which the node cannot run, and tasks of single requests."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Tasks that run as long as the node does; when one of them fails, `failure` raises the reason."""

    def __init__(self) -> None:
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        if not self._failed.done():
            log.critical("the broker stops because a background task failed: %s", error, exc_info=error)
            self._failed.set_exception(error)

    async def failure(self) -> None:
        """Wait until a task fails, and raise its error."""
        await asyncio.shield(self._failed)

    async def unless_failed(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for `work`, or raise the failure of a task without which `work` might never complete."""
        failure = asyncio.ensure_future(self.failure())
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, failure), return_when=asyncio.FIRST_COMPLETED)
        if failure.done():
            task.cancel()
            failure.result()
        failure.cancel()
        await task


class RequestTasks:
    """Tasks of one loop, kept referenced here, since the loop itself keeps only weak references."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` for the running tasks."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
