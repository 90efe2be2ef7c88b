"""The control loop: an event loop on its own thread, so that the quorum and heartbeats keep time under any data load.

The control loop and the data loop communicate in only three ways:

    data -> control     `call`: a request from another node or to the controller; the answer is returned
    control -> data     MetadataFeed: committed metadata, in order
    both                LoopLiveness: the control loop checks that the data loop is responsive
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ControlThread:
    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._new_loop = new_loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="sskafka-control", daemon=True)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "the control loop has not been started"
        return self._loop

    def start(self) -> None:
        self._loop = self._new_loop()
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the control loop, for a caller on another loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    async def stop(self) -> None:
        """Stop the loop. Running tasks are cancelled, so that nobody waits for them forever."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self._cancel_all()
        finally:
            self.loop.close()

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


class LoopLiveness:
    """Tells whether another event loop is responsive."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_ms: int) -> None:
        self._loop = loop
        self._timeout_ms = timeout_ms

    async def is_turning(self) -> bool:
        """Return whether the loop takes a turn within the time that a busy loop may need."""
        here, turned = asyncio.get_running_loop(), asyncio.Event()
        self._loop.call_soon_threadsafe(lambda: here.call_soon_threadsafe(turned.set))
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await turned.wait()
        except TimeoutError:
            return False
        return True
