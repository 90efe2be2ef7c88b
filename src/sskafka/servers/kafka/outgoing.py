"""The outgoing half of a connection: all ready responses leave in one write, as fast as the client reads them.

File slices are read when the socket has room for them, so a slow client does not fill the memory. A thread reads data
that is not in the page cache; the responses after it wait.
"""

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from sskafka.model.buffers import Buffer
from sskafka.model.native import mypyc_attr
from sskafka.servers.kafka.request import Part, Response
from sskafka.servers.kafka.socket_transport import StreamProtocol, Transport
from sskafka.storage.errors import StorageError
from sskafka.storage.file_slice import FileSlice

if TYPE_CHECKING:
    from sskafka.servers.kafka.listener import Listener

log = logging.getLogger(__name__)

WRITE_CHUNK_BYTES: Final = 1024 * 1024


@mypyc_attr(allow_interpreted_subclasses=True)
class Outgoing(StreamProtocol):
    __slots__ = (
        "_listener",
        "_out",
        "_reading_cold",
        "_transport",
        "_unwritten_bytes",
        "_write_paused",
        "closed",
        "last_active_tick",
        "peer",
    )

    def __init__(self, listener: "Listener") -> None:
        self._listener = listener
        self._transport: Transport | None = None
        self._out: deque[Part] = deque()
        self._unwritten_bytes = 0  # bytes in memory since the last flush
        self._write_paused = False
        self._reading_cold = False
        self.closed = False
        self.last_active_tick = listener.tick
        self.peer = ""

    def put_out(self, response: Response) -> None:
        if isinstance(response, bytes):
            self._out.append(response)
            self._unwritten_bytes += len(response)
        else:
            self._out.extend(response)

    def flush(self) -> None:
        """Write ready responses until the socket is full. File slices are read here and no earlier."""
        out = self._out
        self._unwritten_bytes = 0
        while out and not self._write_paused and not self._reading_cold and not self.closed:
            chunk: list[Buffer] = []
            size = 0
            while out and size < WRITE_CHUNK_BYTES:
                part = out.popleft()
                data = part if isinstance(part, bytes) else self._read_slice(part)
                if data is None:
                    break
                chunk.append(data)
                size += len(data)
            self._write(chunk, size)

    def _write(self, chunk: list[Buffer], size: int) -> None:
        transport = self._transport
        if not chunk or transport is None:
            return
        self.last_active_tick = self._listener.tick
        self._listener.counters.bytes_sent += size
        if len(chunk) == 1:
            transport.write(chunk[0])
        else:
            transport.writelines(chunk)

    def _read_slice(self, part: FileSlice) -> Buffer | None:
        """Return the next bytes of a file slice, at most a chunk, or None if they must be read from the disk first."""
        if part.length > WRITE_CHUNK_BYTES:
            self._out.appendleft(part.part(WRITE_CHUNK_BYTES, part.length))
            part = part.part(0, WRITE_CHUNK_BYTES)
        try:
            data = part.read_now()
        except (OSError, StorageError) as error:
            self._out.clear()
            self.refuse(f"the log could not be read while it was being sent: {error}")
            return None
        if data is None:
            self._read_cold(part)
        return data

    def _read_cold(self, part: FileSlice) -> None:
        self._reading_cold = True

        def done(data: Buffer | None) -> None:
            self._reading_cold = False
            if data is None:
                self._out.clear()
                self.refuse("the log could not be read while it was being sent")
            elif not self.closed:
                self._out.appendleft(bytes(data))
                self.flush()

        self._listener.read_in_background(part, done)

    def refuse(self, reason: str) -> None:
        """Close the connection once the responses to the requests before the bad one have been sent."""
        self._listener.log_closing(self.peer, reason)
        self._listener.counters.refused += 1
        self.flush()
        self.closed = True
        if self._transport is not None:
            self._transport.close()

    def drop(self, reason: str) -> None:
        """Close the connection at once because of an error of the client."""
        self._listener.log_closing(self.peer, reason)
        self._listener.counters.refused += 1
        self.close()

    def close(self) -> None:
        """Close the connection at once."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()
