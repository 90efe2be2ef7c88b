"""Which segments of a log hold their file open: the few that were opened last.

A log can have thousands of segments and a broker thousands of logs, so the rest open theirs when somebody reads them.
Closing only lets go: whoever holds the file, a reader's slice or a sync under way, keeps it.
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
