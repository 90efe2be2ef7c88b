"""An event loop on its own thread, so that programs without an event loop can use the asyncio clients.

The thread is a daemon thread: a program that does not close its client can still exit; unfinished work is cancelled.
"""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class LoopClient(Protocol):
    """A client that runs on the loop: opened by `__aenter__`, closed by `close`."""

    async def __aenter__(self) -> Self: ...

    async def close(self) -> None: ...


C = TypeVar("C", bound=LoopClient)


_running: "set[LoopThread]" = set()
_calls_of_caller: ContextVar[SimpleQueue[Callable[[], None] | None]] = ContextVar("calls_of_caller")
"""Functions for the thread that waits for the current task to call."""


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
        """Call `function` on the loop's thread, where objects that belong to the loop may be used."""

        async def work() -> T:
            return function(*args, **kwargs)

        return self.run(work())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop and return its result. If the wait ends early, e.g. by Ctrl+C, cancel the work."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("this client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def run_with_callbacks(self, work: Coroutine[Any, Any, T]) -> T:
        """As `run`, but functions that `work` passes to `call_back` run on the thread of the caller."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("this client is closed")
        calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

        async def with_caller() -> T:
            _calls_of_caller.set(calls)
            return await work

        future = asyncio.run_coroutine_threadsafe(with_caller(), self._loop)
        future.add_done_callback(lambda _: calls.put(None))
        try:
            while (call := calls.get()) is not None:
                call()
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Stop the loop and its thread; a second call does nothing."""
        if not self._loop.is_closed():
            _running.discard(self)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def abandon(self) -> None:
        """Cancel all tasks of the loop and close it."""
        self.run(_cancel_all())
        self.close()


async def call_back(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call `function` on the thread that waits in `run_with_callbacks`, and raise its error.

    The function may use the client: the event loop does not wait for it."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def settle(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def call() -> None:
        error = None
        try:
            function(*args, **kwargs)
        except Exception as raised:  # raised again where `call_back` was called
            error = raised
        loop.call_soon_threadsafe(settle, error)

    _calls_of_caller.get().put(call)
    await done


def run_once(work: Coroutine[Any, Any, T]) -> T:
    """Run the work on a new loop thread, also for callers that are on an event loop themselves, as notebooks are."""
    thread = LoopThread("sskafka-once")
    try:
        return thread.run(work)
    finally:
        thread.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@atexit.register
def _abandon_unclosed() -> None:
    for thread in list(_running):
        thread.abandon()


class ThreadedClient(Generic[C]):
    """Synchronous client: runs an asyncio client on its own loop thread. A context manager."""

    def __init__(self, name: str, make: Callable[[], C]) -> None:
        self._thread = LoopThread(name)
        try:
            self._client = self._thread.run(_open(make))
        except BaseException:
            self._thread.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client, which may wait for pending deliveries, and its thread; a second call does nothing."""
        try:
            if not self._thread.is_closed:
                self._thread.run(self._client.close())
        finally:
            self._thread.close()


async def _open(make: Callable[[], C]) -> C:
    return await make().__aenter__()
