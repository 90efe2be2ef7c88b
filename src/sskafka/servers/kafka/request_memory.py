"""Buffers for requests too large for the shared receive buffer, and the bound on what they may hold together.

A buffer is lent while its frame arrives and is handled, then comes back; a few are kept, because clearing
a fresh megabyte costs more than handling the request in it. A single request is always admitted when
nothing else is, so that the bound can be smaller than the largest request.
"""

from collections import deque
from collections.abc import Callable

_KEPT_BUFFERS = 8
_KEPT_BUFFER_BYTES_MAX = 4 * 1024 * 1024


class RequestMemory:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lent_bytes = 0
        self._kept: list[bytearray] = []
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def lent_bytes(self) -> int:
        return self._lent_bytes

    def borrow(self, size: int) -> bytearray | None:
        """A buffer of at least `size` bytes, or None when too much is lent already: call `wait` then."""
        if self._lent_bytes and self._lent_bytes + size > self._limit_bytes:
            return None
        buffer = self._take_kept(size) or bytearray(_round_up(size))
        self._lent_bytes += len(buffer)
        return buffer

    def wait(self, retry: Callable[[], None]) -> None:
        """Have `retry` called once room has come back."""
        self._waiting.append(retry)

    def give_back(self, buffer: bytearray) -> None:
        self._lent_bytes -= len(buffer)
        if len(self._kept) < _KEPT_BUFFERS and len(buffer) <= _KEPT_BUFFER_BYTES_MAX:
            self._kept.append(buffer)
        for _ in range(len(self._waiting)):
            self._waiting.popleft()()

    def _take_kept(self, size: int) -> bytearray | None:
        for index, buffer in enumerate(self._kept):
            if len(buffer) >= size:
                return self._kept.pop(index)
        return None


def _round_up(size: int) -> int:
    """Powers of two while a buffer is worth keeping, so that kept ones fit the next request too."""
    if size > _KEPT_BUFFER_BYTES_MAX:
        return size
    return 1 << (size - 1).bit_length()
