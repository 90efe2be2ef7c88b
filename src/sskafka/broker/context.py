"""The context that every part of a node receives: settings, clock, threads, tasks, and clean-ups for its stop."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from sskafka.model.settings import Settings
from sskafka.runtime.clock import Clock
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.runtime.selector import Selector
from sskafka.runtime.tasks import BackgroundTasks, RequestTasks


class BrokerContext(NamedTuple):
    settings: Settings
    clock: Clock
    executor: Executor
    """Threads for fsync and reads of cold data."""
    background: BackgroundTasks
    requests: RequestTasks
    stack: AsyncExitStack
    """Clean-ups that run when the node stops, in reverse order."""
    descriptors: ConnectionDescriptors
    selector: Selector
    """Counters of the connections on the data loop."""

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` until the node stops. If `work` fails before that, the node fails."""
        self.stack.push_async_callback(_end, self.background.spawn(work))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
