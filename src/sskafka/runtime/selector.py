"""Waits for many sockets with one descriptor of the event loop, and serves those that are ready in one callback.

    sockets -> epoll -> a callback of the event loop -> `ready` of each socket -> what was left for the end of the turn

A transport of the event loop, or `add_reader`, costs several calls into Python for every socket that is ready. Here
the event loop makes one call for all of them (docs/performance.md has the figures). Systems without epoll have that
cost: there the event loop watches each socket by itself.

`call_at_end` defers work that should be done once for all requests of a turn, such as waking readers: it runs when
every ready socket was served, in the same callback, and so without another turn of the event loop.
"""

import asyncio
import logging
import select
from collections.abc import Callable
from typing import Final, Protocol

from sskafka.model.native import mypyc_attr

_log = logging.getLogger(__name__)

READABLE: Final = 1  # EPOLLIN
WRITABLE: Final = 4  # EPOLLOUT
SOCKETS_MAX: Final = 256
"""Sockets that are served in one turn; the others are served in the next turn."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Pollable:
    """The owner of a socket."""

    __slots__ = ()

    def ready(self, events: int) -> None:
        """Read, write or notice an error: the socket is ready for `events`. Must not raise."""
        raise NotImplementedError


class Events(Protocol):
    """The part of `select.epoll` that a selector uses."""

    def register(self, fd: int, eventmask: int, /) -> None: ...

    def modify(self, fd: int, eventmask: int, /) -> None: ...

    def unregister(self, fd: int, /) -> None: ...

    def close(self) -> None: ...


class Selector:
    def __init__(self, loop: asyncio.AbstractEventLoop, *, uses_epoll: bool = hasattr(select, "epoll")) -> None:
        self._loop = loop
        self._sockets: dict[int, Pollable] = {}
        self._at_end: list[Callable[[], None]] = []
        self._is_serving = False
        self._epoll: select.epoll | None = select.epoll() if uses_epoll else None
        self._events: Events = LoopEvents(loop, self._serve_one)
        if self._epoll is not None:
            self._events = self._epoll
            loop.add_reader(self._epoll.fileno(), self._serve)

    def close(self) -> None:
        """Watch no socket any more. Sockets are closed by their owners."""
        if self._epoll is not None and not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
        self._events.close()
        self._sockets.clear()

    def watch(self, descriptor: int, events: int, owner: Pollable) -> None:
        """Call `owner.ready` whenever the socket is ready for one of `events`; 0: never.

        A socket that is not watched for anything does not report errors either."""
        known = descriptor in self._sockets
        if not events:
            if known:
                del self._sockets[descriptor]
                self._events.unregister(descriptor)
            return
        self._sockets[descriptor] = owner
        if known:
            self._events.modify(descriptor, events)
        else:
            self._events.register(descriptor, events)

    def call_at_end(self, callback: Callable[[], None]) -> None:
        """Call back when all sockets that are ready were served. Outside of a turn, call back soon."""
        if self._is_serving:
            self._at_end.append(callback)
        else:
            self._loop.call_soon(callback)

    def _serve(self) -> None:
        epoll = self._epoll
        assert epoll is not None
        sockets = self._sockets
        self._is_serving = True
        try:
            for descriptor, events in epoll.poll(0, SOCKETS_MAX):
                owner = sockets.get(descriptor)
                if owner is not None:  # otherwise the turn of another socket has closed this one
                    owner.ready(events)
        finally:
            self._end_turn()

    def _serve_one(self, descriptor: int, events: int) -> None:
        owner = self._sockets.get(descriptor)
        if owner is not None:
            self._is_serving = True
            try:
                owner.ready(events)
            finally:
                self._end_turn()

    def _end_turn(self) -> None:
        while self._at_end:
            callbacks, self._at_end = self._at_end, []
            for callback in callbacks:
                try:
                    callback()
                except Exception:  # one that fails must not keep the others from running
                    _log.exception("work at the end of a turn failed")
        self._is_serving = False


class LoopEvents:
    """The same as `select.epoll`, with readers and writers of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Callable[[int, int], None]) -> None:
        self._loop = loop
        self._ready = ready
        self._watched: dict[int, int] = {}

    def register(self, fd: int, eventmask: int, /) -> None:
        self._watched[fd] = eventmask
        if eventmask & READABLE:
            self._loop.add_reader(fd, self._ready, fd, READABLE)
        if eventmask & WRITABLE:
            self._loop.add_writer(fd, self._ready, fd, WRITABLE)

    def modify(self, fd: int, eventmask: int, /) -> None:
        self.unregister(fd)
        self.register(fd, eventmask)

    def unregister(self, fd: int, /) -> None:
        eventmask = self._watched.pop(fd)
        if eventmask & READABLE:
            self._loop.remove_reader(fd)
        if eventmask & WRITABLE:
            self._loop.remove_writer(fd)

    def close(self) -> None:
        for fd in list(self._watched):
            self.unregister(fd)
