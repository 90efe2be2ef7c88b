"""What every part of a node stands on."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from sskafka.model.settings import Settings
from sskafka.runtime.clock import Clock
from sskafka.runtime.tasks import BackgroundTasks, RequestTasks


class Ground(NamedTuple):
    settings: Settings
    clock: Clock
    executor: Executor
    """Threads that sit in fsync and cold reads."""
    background: BackgroundTasks
    requests: RequestTasks
    stack: AsyncExitStack
    """What is undone when the node stops, the last thing first."""

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Until its turn comes when the node stops; if it dies before, the node fails."""
        self.stack.push_async_callback(_end, self.background.spawn(work))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
