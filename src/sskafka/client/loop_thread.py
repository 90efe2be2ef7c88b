"""An event loop on a thread of its own: how programs without a loop use what is written for one.

The thread is a daemon: a program that forgets to close its client can still end, and what is left then ends with it.
"""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class LoopClient(Protocol):
    """What runs on the loop: opened by `__aenter__`, ended by `close`."""

    async def __aenter__(self) -> Self: ...

    async def close(self) -> None: ...


C = TypeVar("C", bound=LoopClient)


_running: "set[LoopThread]" = set()


class LoopThread:
    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        _running.add(self)

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls `function` on the loop's thread, where what belongs to the loop may be touched."""

        async def work() -> T:
            return function(*args, **kwargs)

        return self.run(work())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for `work`; whatever ends the wait, Ctrl+C too, ends the work."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("this client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """A second call does nothing."""
        if not self._loop.is_closed():
            _running.discard(self)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def abandon(self) -> None:
        """Ends whatever goes on there, finished or not."""
        self.run(_cancel_all())
        self.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@atexit.register
def _abandon_forgotten() -> None:
    for thread in list(_running):
        thread.abandon()


class ThreadedClient(Generic[C]):
    """A client on a loop thread of its own; a context manager without `async`."""

    def __init__(self, name: str, make: Callable[[], C]) -> None:
        self._thread = LoopThread(name)
        try:
            self._client = self._thread.run(_opened(make))
        except BaseException:
            self._thread.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Waits for what is on its way; a second call does nothing."""
        try:
            if not self._thread.is_closed:
                self._thread.run(self._client.close())
        finally:
            self._thread.close()


async def _opened(make: Callable[[], C]) -> C:
    return await make().__aenter__()
