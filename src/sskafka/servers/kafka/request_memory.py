"""The requests that are too large for the shared receive buffer, and the bound on their memory.

The listeners of an event loop share one RequestMemory, as the listeners of a broker share one memory pool in Kafka.

    begin       a large request has begun to arrive; its buffer is address space, which becomes memory as bytes arrive
    received    more of it has arrived; `is_full_for` tells whether its connection must stop reading
    end         the request was handled or its connection is gone

Bytes count when they arrive, not when they are announced: a client that announces 100 MB and sends nothing takes
nothing from others. When the bound is reached, only the oldest request goes on, so that one after the other completes;
the others wait. Requests of up to SMALL_BYTES_MAX may use a reserve above the bound.

`close_stalled`, once a second, ends requests whose rest does not arrive: those that have been silent for too long, and,
while the bound is exceeded, the oldest request if it makes little progress.

A few buffers are kept, because fresh memory costs more than handling a request of a megabyte in it.
"""

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Protocol

_KEPT_BUFFERS = 8
_KEPT_BUFFER_BYTES_MAX = 4 * 1024 * 1024
SMALL_BYTES_MAX = 1024 * 1024
RESERVE_BYTES = 32 * 1024 * 1024
READ_BYTES_MAX = 1024 * 1024
"""Maximum number of bytes of one read, so that the bound is exceeded by little."""
PROGRESS_BYTES_MIN = 1024 * 1024
"""Number of bytes that the oldest request must receive in a second while others wait for it."""


class Sender(Protocol):
    """The connection on which a large request arrives."""

    def memory_available(self) -> None: ...

    def drop(self, reason: str) -> None: ...


class LargeRequest:
    __slots__ = ("_buffer", "_size", "filled_bytes", "is_waiting", "last_tick", "marked_bytes", "sender")

    def __init__(self, buffer: mmap, size: int, sender: Sender, tick: int) -> None:
        self._buffer = buffer
        self._size = size
        self.sender = sender
        self.filled_bytes = 0
        self.is_waiting = False
        self.last_tick = tick
        self.marked_bytes = 0

    @property
    def size_bytes(self) -> int:
        return self._size

    @property
    def buffer(self) -> mmap:
        return self._buffer

    @property
    def is_complete(self) -> bool:
        return self.filled_bytes >= self._size

    def room(self) -> memoryview:
        """Return the space for the next bytes."""
        return memoryview(self._buffer)[self.filled_bytes : min(self._size, self.filled_bytes + READ_BYTES_MAX)]

    def content(self) -> memoryview:
        return memoryview(self._buffer)[: self._size]


class RequestMemory:
    def __init__(self, limit_bytes: int) -> None:
        self.held_bytes = 0
        self.tick = 0
        self._listeners: set[str] = set()  # which have called in this second
        self._limit_bytes = limit_bytes
        self._requests: dict[LargeRequest, None] = {}  # the oldest first
        self._kept: list[mmap] = []

    def begin(self, size: int, beginning: memoryview, sender: Sender) -> LargeRequest:
        """Admit a request of which `beginning` has arrived."""
        request = LargeRequest(self._take_kept(size) or _new_buffer(size), size, sender, self.tick)
        request.room()[: len(beginning)] = beginning
        self._requests[request] = None
        self.received(request, len(beginning))
        return request

    def received(self, request: LargeRequest, nbytes: int) -> None:
        request.filled_bytes += nbytes
        request.last_tick = self.tick
        self.held_bytes += nbytes

    def is_full_for(self, request: LargeRequest) -> bool:
        """Return whether the request must wait, until `memory_available` of its sender is called."""
        if self.held_bytes <= self._limit_for(request) or request is next(iter(self._requests)):
            return False
        request.is_waiting = True
        return True

    def end(self, request: LargeRequest) -> None:
        del self._requests[request]
        self.held_bytes -= request.filled_bytes
        buffer = request.buffer
        if len(self._kept) < _KEPT_BUFFERS and len(buffer) <= _KEPT_BUFFER_BYTES_MAX:
            self._kept.append(buffer)
        self._wake_waiting()

    def close_stalled(self, listener: str, silent_ticks_max: int) -> None:
        """Close the connections of requests whose rest does not arrive; called once a second by each listener.

        A second is over when a listener calls again: the calls of the others in between are of the same second."""
        if self._listeners and listener not in self._listeners:
            self._listeners.add(listener)
            return
        self._listeners = {listener}
        self.tick = tick = self.tick + 1
        for request in list(self._requests):
            if not request.is_complete and not request.is_waiting and tick - request.last_tick > silent_ticks_max:
                _close(request, f"nothing of the rest of a request arrived for {silent_ticks_max} s")
        self._close_slow_oldest()

    def _close_slow_oldest(self) -> None:
        oldest = next(iter(self._requests), None)
        if oldest is None or oldest.is_complete or self.held_bytes <= self._limit_bytes:
            return
        if oldest.marked_bytes and oldest.filled_bytes - oldest.marked_bytes < PROGRESS_BYTES_MIN:
            _close(oldest, "the memory for requests is used up, and the oldest request arrives too slowly")
        else:
            oldest.marked_bytes = max(1, oldest.filled_bytes)

    def _limit_for(self, request: LargeRequest) -> int:
        return self._limit_bytes + (RESERVE_BYTES if request.size_bytes <= SMALL_BYTES_MAX else 0)

    def _wake_waiting(self) -> None:
        oldest = next(iter(self._requests), None)
        for request in [request for request in self._requests if request.is_waiting]:
            if request is oldest or self.held_bytes <= self._limit_for(request):
                request.is_waiting = False
                request.last_tick = self.tick
                request.sender.memory_available()

    def _take_kept(self, size: int) -> mmap | None:
        for index, buffer in enumerate(self._kept):
            if len(buffer) >= size:
                return self._kept.pop(index)
        return None


def _close(request: LargeRequest, reason: str) -> None:
    missing = request.size_bytes - request.filled_bytes
    request.sender.drop(f"{reason}: {missing} of {request.size_bytes} bytes are missing")


def _new_buffer(size: int) -> mmap:
    """Return address space that becomes memory when it is written to. A bytearray would be cleared, all of it."""
    if size <= _KEPT_BUFFER_BYTES_MAX:  # powers of two, so that kept ones fit the next request too
        size = 1 << (size - 1).bit_length()
    return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
