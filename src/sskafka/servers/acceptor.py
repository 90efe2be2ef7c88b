"""Accepts the connections of one listening socket, and pauses while the process has no room for another.

A paused acceptor leaves new connections in the backlog of the socket, where they wait. It looks for room a few times a
second. The first connection that has to wait is logged, and so is the end of the pause; while pauses follow each other
closely, only one of them is logged.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from sskafka.model.counters import AcceptorCounters
from sskafka.runtime.descriptors import SHORTAGE, ConnectionDescriptors

log = logging.getLogger(__name__)

ACCEPTS_MAX = 32
"""Connections accepted in one turn of the event loop."""
RETRY_S = 0.2
HANDSHAKE_TIMEOUT_S = 10.0
HANDSHAKES_CLOSED_AT_ONCE = 8
LOG_INTERVAL_S = 30.0
_LATER = SHORTAGE | {errno.ENOBUFS, errno.ENOMEM}
_MADE_NO_CONNECTION = (BlockingIOError, InterruptedError, ConnectionAbortedError)


class Acceptor:
    def __init__(
        self,
        name: str,
        bound: socket.socket,
        make_protocol: Callable[[], asyncio.BaseProtocol] | None,
        descriptors: ConnectionDescriptors,
        counters: AcceptorCounters,
        make_room: Callable[[], bool] | None = None,
        tls_context: Callable[[], ssl.SSLContext] | None = None,
        begin: Callable[[socket.socket], None] | None = None,
    ) -> None:
        """`make_room` may close a connection in favour of a new one. It returns False if there is none to close.

        The creator of the protocols calls `descriptors.connection_closed` when a connection is lost. `tls_context` is
        called for each connection, whose protocol begins after the handshake.

        `begin` serves a connection itself, without a transport of the event loop and so without a protocol."""
        self._name = name
        self._bound = bound
        self._make_protocol = make_protocol
        self._descriptors = descriptors
        self._counters = counters
        self._make_room = make_room
        self._tls_context = tls_context
        self._begin = begin
        self._handshakes: dict[socket.socket, None] = {}  # the oldest first
        self._starting: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._logged_s: float | None = None
        self._is_logged = False

    def start(self, backlog: int) -> None:
        """Listen and accept on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._bound.setblocking(False)
        self._bound.listen(backlog)
        self._loop.add_reader(self._bound.fileno(), self._accept)

    def close(self) -> None:
        """Stop listening. Connections that were accepted stay open."""
        if self._bound.fileno() >= 0:
            self._loop.remove_reader(self._bound.fileno())
        if self._retry is not None:
            self._retry.cancel()
        self._bound.close()

    async def stop(self) -> None:
        """Stop listening, and return when every connection that was accepted has reached its protocol."""
        self.close()
        await asyncio.gather(*self._starting, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_MAX):
            if not self._descriptors.has_room(self._bound.fileno()):
                if not self._close_handshakes() and (self._make_room is None or not self._make_room()):
                    self._pause()
                return  # if a connection was closed, there is room in the next turn
            try:
                accepted, _ = self._bound.accept()
            except _MADE_NO_CONNECTION:
                return
            except OSError as error:
                if error.errno not in _LATER:
                    raise
                self._pause()
                return
            self._serve(accepted)

    def _serve(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        self._descriptors.took_one()
        if self._begin is not None:
            self._begin_or_close(self._begin, accepted)
            return
        if self._tls_context is not None:
            self._handshakes[accepted] = None
        task = self._loop.create_task(self._connect(accepted))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _begin_or_close(self, begin: Callable[[socket.socket], None], accepted: socket.socket) -> None:
        try:
            begin(accepted)
        except OSError as error:
            self._close_unserved(accepted, error)
        except Exception as error:  # a client must not wait for responses of a connection that nobody serves
            log.exception("%s: a connection cannot be served", self._name)
            self._close_unserved(accepted, error)

    async def _connect(self, accepted: socket.socket) -> None:
        assert self._make_protocol is not None
        try:
            if self._tls_context is None:
                await self._loop.connect_accepted_socket(self._make_protocol, accepted)
            else:
                await self._connect_with_tls(self._make_protocol, accepted, self._tls_context())
        except OSError as error:
            self._close_unserved(accepted, error)

    def _close_unserved(self, accepted: socket.socket, error: Exception) -> None:
        self._descriptors.connection_closed()
        accepted.close()
        log.debug("%s: a connection ended before it was served: %s", self._name, error)

    async def _connect_with_tls(
        self, make_protocol: Callable[[], asyncio.BaseProtocol], accepted: socket.socket, context: ssl.SSLContext
    ) -> None:
        try:
            await self._loop.connect_accepted_socket(
                make_protocol, accepted, ssl=context, ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S
            )
        finally:
            self._handshakes.pop(accepted, None)

    def _close_handshakes(self) -> bool:
        """End the oldest TLS handshakes, which may belong to silent clients. Return False if there are none."""
        oldest = list(islice(self._handshakes, HANDSHAKES_CLOSED_AT_ONCE))
        for accepted in oldest:
            del self._handshakes[accepted]
            with suppress(OSError):  # the client is gone already
                accepted.shutdown(socket.SHUT_RDWR)
        return bool(oldest)

    # -- pauses

    def _pause(self) -> None:
        self._loop.remove_reader(self._bound.fileno())
        self._counters.pauses += 1
        self._counters.is_paused = True
        self._maybe_log_pause()
        self._retry = self._loop.call_later(RETRY_S, self._maybe_resume)

    def _maybe_resume(self) -> None:
        if not self._descriptors.has_room(self._bound.fileno()):
            self._close_handshakes()
            self._retry = self._loop.call_later(RETRY_S, self._maybe_resume)
            return
        self._retry = None
        self._counters.is_paused = False
        if self._is_logged:
            self._is_logged = False
            log.warning("%s accepts connections again", self._name)
        self._loop.add_reader(self._bound.fileno(), self._accept)

    def _maybe_log_pause(self) -> None:
        now_s = self._loop.time()
        if self._logged_s is not None and now_s - self._logged_s < LOG_INTERVAL_S:
            return
        self._logged_s = now_s
        self._is_logged = True
        log.warning(
            "%s accepts no more connections for now: %d are open, and the other descriptors are kept for files; "
            "new connections wait (raise `ulimit -n`, or lower max.connections or connections.max.idle.ms)",
            self._name,
            self._descriptors.connections,
        )
