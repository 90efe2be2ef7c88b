"""How far each client has fetched in a partition, for readers that commit nothing anywhere else.

A reader is known by its client id. The table is bounded: when it is full, who fetched longest ago is forgotten.
"""

from typing import NamedTuple

READERS_MAX = 64


class ReaderPosition(NamedTuple):
    fetch_offset: int
    fetched_ms: float
    """By the monotonic clock."""


class ReaderPositions(dict[str, ReaderPosition]):
    __slots__ = ()

    def note(self, client_id: str, fetch_offset: int, now_ms: float) -> None:
        if client_id not in self and len(self) >= READERS_MAX:
            del self[min(self, key=lambda name: self[name].fetched_ms)]
        self[client_id] = ReaderPosition(fetch_offset, now_ms)
