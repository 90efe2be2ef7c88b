"""How far each client has fetched in a partition, for consumers that do not commit offsets anywhere.

A reader is identified by its client id. The table is bounded: when it is full, the least recent reader is removed.
"""

from typing import Final

READERS_MAX: Final = 64


class ReaderPositions(dict[str, tuple[int, float]]):
    """Client id -> the last fetch offset, and its time by the monotonic clock."""

    __slots__ = ()

    def note(self, client_id: str, fetch_offset: int, now_ms: float) -> None:
        if len(self) >= READERS_MAX and client_id not in self:
            del self[min(self, key=lambda name: self[name][1])]
        self[client_id] = fetch_offset, now_ms
