"""Writes responses to a socket directly, as long as the socket takes them.

uvloop queues what is written to a transport until the end of the turn. For a small response that costs more than the
write itself. While nothing is queued, responses can be written to the descriptor at once. What the socket does not
take goes to the transport, which waits for the socket and pauses the connection.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Protocol

from sskafka.model.buffers import Buffer

PARTS_MAX = 1024
"""IOV_MAX of Linux and macOS."""


class ResponseWriter(Protocol):
    def write(self, data: Buffer, /) -> None: ...

    def writelines(self, list_of_data: Sequence[Buffer], /) -> None: ...


class SocketWriter:
    __slots__ = ("_descriptor", "_transport")

    def __init__(self, transport: asyncio.Transport, descriptor: int) -> None:
        self._transport = transport
        self._descriptor = descriptor

    def write(self, data: Buffer, /) -> None:
        transport = self._transport
        # A closing transport may have closed its descriptor, whose number a new connection may have.
        if not transport.is_closing() and not transport.get_write_buffer_size():
            try:
                written = os.write(self._descriptor, data)
            except OSError:  # the socket is full, or broken, which the transport will notice
                written = 0
            if written == len(data):
                return
            if written:
                data = memoryview(data)[written:]
        transport.write(data)

    def writelines(self, list_of_data: Sequence[Buffer], /) -> None:
        transport = self._transport
        parts = list_of_data
        if len(parts) <= PARTS_MAX and not transport.is_closing() and not transport.get_write_buffer_size():
            try:
                written = os.writev(self._descriptor, parts)
            except OSError:
                written = 0
            parts = _rest(parts, written)
            if not parts:
                return
        transport.writelines(parts)


def _rest(parts: Sequence[Buffer], written: int) -> Sequence[Buffer]:
    """Return the bytes that were not written."""
    for index, part in enumerate(parts):
        if written < len(part):
            return [memoryview(part)[written:], *parts[index + 1 :]]
        written -= len(part)
    return ()


def response_writer(transport: asyncio.Transport) -> ResponseWriter:
    """Return the writer of a connection: the transport itself if it has no socket, because it encrypts."""
    socket = transport.get_extra_info("socket")
    return transport if socket is None else SocketWriter(transport, socket.fileno())
