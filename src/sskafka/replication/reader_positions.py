"""How far each client has fetched in a partition, for readers that commit nothing anywhere else.

A reader is known by its client id. The table is bounded: when it is full, who fetched longest ago is forgotten.
"""

READERS_MAX = 64


class ReaderPositions(dict[str, tuple[int, float]]):
    """By client id: the offset that was asked for last, and when that was by the monotonic clock."""

    __slots__ = ()

    def note(self, client_id: str, fetch_offset: int, now_ms: float) -> None:
        if len(self) >= READERS_MAX and client_id not in self:
            del self[min(self, key=lambda name: self[name][1])]
        self[client_id] = fetch_offset, now_ms
