"""What happened in a group, newest last: who came and went and why, and how long each rebalance took.

It answers the question that people ask first ("why does my group rebalance?") and lives in memory alone: it begins anew
with each coordinator, and it is bounded.
"""

from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

EVENTS_KEPT = 200


class EventKind(StrEnum):
    LOADED = "loaded"
    JOINED = "joined"
    REJOINED = "rejoined"
    LEFT = "left"
    TIMED_OUT = "timed-out"
    FENCED = "fenced"
    REBALANCE_STARTED = "rebalance-started"
    REBALANCE_COMPLETED = "rebalance-completed"
    EMPTIED = "emptied"


class GroupEvent(NamedTuple):
    at_ms: int
    kind: EventKind
    generation: int
    reason: str = ""
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    member_count: int = 0
    duration_ms: int | None = None
    """Of a completed rebalance: from its start until the members had their assignments."""


class Timeline:
    __slots__ = ("_events", "_rebalance_started_ms")

    def __init__(self) -> None:
        self._events: deque[GroupEvent] = deque(maxlen=EVENTS_KEPT)
        self._rebalance_started_ms: int | None = None

    def __iter__(self) -> Iterator[GroupEvent]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: GroupEvent) -> None:
        self._events.append(event)

    def rebalance_started(self, at_ms: int, generation: int, reason: str, member_count: int) -> None:
        """One that begins anew before it was through goes on counting from its first start."""
        if self._rebalance_started_ms is None:
            self._rebalance_started_ms = at_ms
        self.add(GroupEvent(at_ms, EventKind.REBALANCE_STARTED, generation, reason, member_count=member_count))

    def rebalance_completed(self, at_ms: int, generation: int, member_count: int) -> None:
        started_ms, self._rebalance_started_ms = self._rebalance_started_ms, None
        duration_ms = at_ms - started_ms if started_ms is not None else None
        kind = EventKind.REBALANCE_COMPLETED if member_count else EventKind.EMPTIED
        self.add(GroupEvent(at_ms, kind, generation, member_count=member_count, duration_ms=duration_ms))


class GroupMemory:
    """What is known of a group in memory alone: it outlives a change of the group's kind, and no coordinator."""

    __slots__ = ("seen_topics", "timeline")

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.seen_topics: object = None
        """The cluster's topics as they were when a consumer group's target was last compared with them."""
