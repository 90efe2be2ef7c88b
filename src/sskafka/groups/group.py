"""What every kind of group has in common; a shard keeps them in one store, whatever their kind.

Offsets are committed, fetched, deleted and expired in the same way for all of them: `sskafka.groups.offset_requests`
asks a group only what is declared here.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, Protocol

from sskafka.groups.offsets import CommittedOffset
from sskafka.model.coordination import Completion
from sskafka.model.ids import Uuid

EVENTS_KEPT = 200
UNKNOWN_MEMBER = ""
NO_GENERATION = -1
CLASSIC = "classic"
CONSUMER = "consumer"


class OffsetCommitter(NamedTuple):
    """Who says how far a group has read."""

    member_id: str = UNKNOWN_MEMBER
    instance_id: str | None = None
    generation: int = NO_GENERATION
    """Of a classic group; the member's epoch in a consumer group."""
    is_transactional: bool = False
    is_too_old_for_epochs: bool = False
    """It sent an OffsetCommit of a version that knows of no member epochs."""

    @property
    def is_unnamed(self) -> bool:
        """Nobody's commit: of an administrator, or of a consumer that picks its partitions itself."""
        return self.generation == NO_GENERATION and self.member_id == UNKNOWN_MEMBER and self.instance_id is None


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
    """What happened in a group, newest last: who came and went and why, and how long each rebalance took.

    It answers the question that people ask first ("why does my group rebalance?") and lives in memory alone: it begins
    anew with each coordinator, and it is bounded."""

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

    def member(
        self,
        at_ms: int,
        kind: EventKind,
        generation: int,
        reason: str,
        member_id: str,
        client: tuple[str, str],
        instance_id: str | None,
        member_count: int,
    ) -> None:
        self.add(GroupEvent(at_ms, kind, generation, reason, member_id, *client, instance_id, member_count))

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


class Group(Protocol):
    group_id: str

    @property
    def timeline(self) -> Timeline: ...

    @property
    def type_name(self) -> str:
        """As ListGroups spells it: classic or consumer."""
        ...

    @property
    def protocol_type(self) -> str: ...

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """It has no members: it may be deleted. Members that were only given an id do not count."""
        ...

    def check_commit(self, committer: OffsetCommitter, partitions: Iterable[tuple[Uuid | None, int]]) -> None:
        """Raises KafkaError for a committer whose word does not count; a topic that is gone has no id."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError for a member that the group no longer has."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether members read the topic; True when that cannot be known."""
        ...

    def expires_offset(self, topic: str, offset: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
        """Whether nobody has needed the offset for so long."""
        ...

    def waiting(self) -> list[Completion]:
        """Everyone whose answer the group holds back."""
        ...
