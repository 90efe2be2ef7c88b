"""The segments of a log that hold their file open: only the few that were opened last.

A log can have thousands of segments and a broker thousands of logs, so other segments open their file when it is read.
Closing only drops the reference: a reader's slice or a running sync keeps the file open.
"""

from collections import deque
from typing import Protocol

_OPEN_MAX = 5


class HoldsFile(Protocol):
    def close(self) -> None: ...


class OpenFiles:
    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: deque[HoldsFile] = deque()

    def opened(self, holder: HoldsFile) -> None:
        self._holders.append(holder)
        if len(self._holders) > _OPEN_MAX:
            self._holders.popleft().close()

    def close_all(self) -> None:
        while self._holders:
            self._holders.popleft().close()
