"""The file descriptors of this process: how many there may be, and how many of them connections may hold.

    0 ............ 3/4 of the limit ........... 15/16 ...... limit
    |  connections and files  |  files, few connections  |  files only  |

Anybody can open connections, so connections are bounded before files are: a broker that cannot open a file cannot
append, recover or clean. The kernel hands out the lowest free descriptor, so its number shows how many are in use,
without counting.
"""

import contextlib
import errno
import os
import resource
import threading
from collections.abc import Callable
from typing import TypeVar

SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE})
"""The process, or the whole system, has no descriptor left."""
_FILES_ONLY_MIN = 16
_SPARES = 8

T = TypeVar("T")


def raise_limit() -> None:
    """Raise the soft limit of descriptors of this process, and of its children, to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # some systems report a hard limit that they do not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit() -> int:
    """Return the soft limit, which is the one that counts."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class ConnectionDescriptors:
    """Decides whether this process may accept one more connection. Shared by all listeners, on any thread."""

    def __init__(self, descriptors_max: int, connections_max: int | None = None) -> None:
        share = descriptors_max * 3 // 4
        self.connections_max = share if connections_max is None else min(share, connections_max)
        self._descriptor_end = descriptors_max - max(_FILES_ONLY_MIN, descriptors_max // 16)
        self._connections = 0
        self._counting = threading.Lock()

    @property
    def connections(self) -> int:
        return self._connections

    def has_room(self, like: int) -> bool:
        """Return whether another connection may be accepted. `like` is any open descriptor."""
        if self._connections >= self.connections_max:
            return False
        try:
            lowest_free = os.dup(like)
        except OSError:
            return False
        os.close(lowest_free)
        return lowest_free < self._descriptor_end

    def took_one(self) -> None:
        with self._counting:
            self._connections += 1

    def connection_closed(self) -> None:
        with self._counting:
            self._connections -= 1


class SpareDescriptors:
    """A few descriptors held in reserve, so that an operation in the middle of its work can still open a file."""

    def __init__(self, count: int = _SPARES) -> None:
        self._count = count
        self._spares: list[int] = []
        self._refill()

    def attempt(self, opening: Callable[[], T]) -> T:
        """Call `opening`; if no descriptor is left, free a spare and call it again."""
        if len(self._spares) < self._count:
            self._refill()
        try:
            return opening()
        except OSError as error:
            if error.errno not in SHORTAGE or not self._spares:
                raise
        os.close(self._spares.pop())
        return opening()

    def close(self) -> None:
        self._count = 0
        while self._spares:
            os.close(self._spares.pop())

    def _refill(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._spares) < self._count:
                self._spares.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
