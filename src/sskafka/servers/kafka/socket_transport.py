"""The transport of a connection: reads its socket into the buffer of the protocol, and writes responses at once.

    selector: the socket is readable -> get_buffer -> recv_into -> buffer_updated
    write(response) -> send; what the socket does not take waits here until the selector says that it is writable

The rules are those of asyncio's transports: `close` sends what waits first, `abort` drops it, `connection_lost` is
called once and never from inside of a call of the protocol, and `pause_writing` and `resume_writing` bound what waits.
Unlike asyncio's, this transport is compiled, takes no turn of the event loop to write, and is served together with all
other sockets that are ready (runtime/selector.py).
"""

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from sskafka.model.buffers import Buffer
from sskafka.model.native import mypyc_attr
from sskafka.runtime.selector import READABLE, WRITABLE, Pollable, Selector

log = logging.getLogger(__name__)

PARTS_MAX: Final = 1024
"""IOV_MAX of Linux and macOS."""
UNSENT_BYTES_MAX: Final = 2 * 1024 * 1024
UNSENT_BYTES_LOW: Final = UNSENT_BYTES_MAX // 4


class Transport(Protocol):
    """What a connection uses of its transport: a socket, TLS around a socket, or lists in tests."""

    def get_extra_info(self, name: str, default: object = None) -> object: ...

    def write(self, data: Buffer, /) -> None: ...

    def writelines(self, list_of_data: Sequence[Buffer], /) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamProtocol:
    """What a transport calls: asyncio.BufferedProtocol as a class that can be compiled."""

    __slots__ = ()

    def connection_made(self, transport: Transport) -> None:
        raise NotImplementedError

    def connection_lost(self, error: Exception | None) -> None:
        raise NotImplementedError

    def get_buffer(self, sizehint: int) -> memoryview:
        raise NotImplementedError

    def buffer_updated(self, nbytes: int) -> None:
        raise NotImplementedError

    def pause_writing(self) -> None:
        raise NotImplementedError

    def resume_writing(self) -> None:
        raise NotImplementedError


class SocketTransport(Pollable):
    __slots__ = (
        "_descriptor",
        "_events",
        "_is_closing",
        "_is_reading",
        "_is_writing_paused",
        "_loop",
        "_protocol",
        "_recv_into",
        "_selector",
        "_send",
        "_socket",
        "_unsent",
        "_unsent_bytes",
    )

    def __init__(
        self,
        connected: socket.socket,
        protocol: StreamProtocol,
        selector: Selector,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Raise OSError if the client is already gone. `connected` does not block."""
        if connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._descriptor = connected.fileno()
        self._recv_into = connected.recv_into
        self._send = connected.send
        self._protocol = protocol
        self._selector = selector
        self._loop = loop
        self._events = 0
        self._is_reading = True
        self._is_closing = False
        self._is_writing_paused = False
        self._unsent: deque[Buffer] = deque()
        self._unsent_bytes = 0

    def start(self) -> None:
        """Begin to serve the socket."""
        self._protocol.connection_made(self)
        self._watch()

    # -- the selector's call

    def ready(self, events: int) -> None:
        try:
            if events != READABLE and self._unsent_bytes:
                self._send_unsent()
            if events != WRITABLE and self._is_reading:
                self._receive()
        except Exception as error:  # an error in one connection must not affect others
            log.exception("a connection failed")
            self._lose(error)

    def _receive(self) -> None:
        if self._receive_once() and self._is_reading:
            self._receive_once()

    def _receive_once(self) -> bool:
        """Return whether the buffer was filled, so that more bytes are likely to wait."""
        protocol = self._protocol
        buffer = protocol.get_buffer(-1)
        try:
            count = self._recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._lose(error)
            return False
        if count:
            protocol.buffer_updated(count)
            return count == len(buffer)
        self.close()  # the client has closed its side
        return False

    # -- what the connection calls

    def get_extra_info(self, name: str, default: object = None) -> object:
        if name == "socket":
            return self._socket
        if name != "peername":
            return default
        try:
            return self._socket.getpeername()
        except OSError:  # the client is gone
            return default

    def write(self, data: Buffer, /) -> None:
        if self._is_closing:
            return
        if not self._unsent_bytes:
            try:
                sent = self._send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._lose(error)
                return
            if sent == len(data):
                return
            if sent:
                data = memoryview(data)[sent:]
        self._keep([data])

    def writelines(self, list_of_data: Sequence[Buffer], /) -> None:
        if self._is_closing:
            return
        self._unsent.extend(list_of_data)
        self._unsent_bytes += sum([len(data) for data in list_of_data])
        if not self._events & WRITABLE:
            self._send_unsent()
        self._watch()
        self._maybe_pause_writing()

    def pause_reading(self) -> None:
        self._is_reading = False
        self._watch()

    def resume_reading(self) -> None:
        self._is_reading = not self._is_closing
        self._watch()

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Close the connection once everything is sent. Read nothing more."""
        if self._is_closing:
            return
        self._is_closing = True
        self._is_reading = False
        self._watch()
        if not self._unsent_bytes:
            self._loop.call_soon(self._end, None)

    def abort(self) -> None:
        self._lose(None)

    # -- what the socket has not taken

    def _keep(self, parts: Sequence[Buffer]) -> None:
        self._unsent.extend(parts)
        self._unsent_bytes += sum([len(part) for part in parts])
        self._watch()
        self._maybe_pause_writing()

    def _maybe_pause_writing(self) -> None:
        if self._unsent_bytes > UNSENT_BYTES_MAX and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def _send_unsent(self) -> None:
        """Send until the socket is full."""
        unsent = self._unsent
        while unsent:
            parts = list(unsent) if len(unsent) <= PARTS_MAX else [unsent[index] for index in range(PARTS_MAX)]
            try:
                sent = os.writev(self._descriptor, parts)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self._lose(error)
                return
            self._unsent_bytes -= sent
            if not self._drop_sent(sent):
                break
        self._after_sending()

    def _drop_sent(self, sent: int) -> bool:
        """Remove what was sent. Return False if only a part of it was, because the socket is full."""
        unsent = self._unsent
        while unsent:
            size = len(unsent[0])
            if sent < size:
                if sent:
                    unsent[0] = memoryview(unsent[0])[sent:]
                return False
            sent -= size
            unsent.popleft()
        return True

    def _after_sending(self) -> None:
        if not self._unsent_bytes and self._events & WRITABLE:
            self._watch()
            if self._is_closing:
                self._loop.call_soon(self._end, None)
                return
        if self._is_writing_paused and self._unsent_bytes <= UNSENT_BYTES_LOW:
            self._is_writing_paused = False
            self._protocol.resume_writing()

    # -- ends

    def _watch(self) -> None:
        """Have the selector watch what this transport waits for."""
        events = (READABLE if self._is_reading else 0) | (WRITABLE if self._unsent_bytes else 0)
        if events != self._events:
            self._events = events
            self._selector.watch(self._descriptor, events, self)

    def _lose(self, error: Exception | None) -> None:
        """Drop what waits, and tell the protocol soon."""
        if self._descriptor < 0:
            return
        self._is_reading = False
        self._is_closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._watch()
        self._loop.call_soon(self._end, error)

    def _end(self, error: Exception | None) -> None:
        if self._descriptor >= 0:
            self._descriptor = -1
            try:
                self._protocol.connection_lost(error)
            finally:
                self._socket.close()
