"""What all kinds of groups have in common. A shard keeps groups of all kinds in one store.

Offsets are committed, fetched, deleted and expired in the same way for all groups: `sskafka.groups.offset_requests`
uses only what is declared here.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, Protocol

from sskafka.groups.offsets import CommittedOffset
from sskafka.groups.partition_set import NOTHING, PartitionSet
from sskafka.model.coordination import Completion
from sskafka.model.ids import Uuid

EVENTS_KEPT = 200
UNKNOWN_MEMBER = ""
NO_GENERATION = -1
CLASSIC = "classic"
CONSUMER = "consumer"


class OffsetCommitter(NamedTuple):
    """The member, administrator or producer that commits offsets."""

    member_id: str = UNKNOWN_MEMBER
    instance_id: str | None = None
    generation: int = NO_GENERATION
    """The generation in a classic group, the member epoch in a consumer group."""
    is_transactional: bool = False
    is_too_old_for_epochs: bool = False
    """Whether the version of its OffsetCommit has no member epochs."""

    @property
    def is_unnamed(self) -> bool:
        """Whether the commit is not by a member: an administrator, or a consumer with manually assigned partitions."""
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
    """Duration of a completed rebalance: from its start until the members had their assignments."""


class Timeline:
    """The events of a group, newest last: which members joined and left and why, and how long each rebalance took.

    The timeline shows why a group rebalances. It is bounded, and exists only in memory: a new coordinator starts with
    an empty one."""

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
        """Record the start of a rebalance. If another one is in progress, the duration counts from the first start."""
        if self._rebalance_started_ms is None:
            self._rebalance_started_ms = at_ms
        self.add(GroupEvent(at_ms, EventKind.REBALANCE_STARTED, generation, reason, member_count=member_count))

    def rebalance_completed(self, at_ms: int, generation: int, member_count: int) -> None:
        started_ms, self._rebalance_started_ms = self._rebalance_started_ms, None
        duration_ms = at_ms - started_ms if started_ms is not None else None
        kind = EventKind.REBALANCE_COMPLETED if member_count else EventKind.EMPTIED
        self.add(GroupEvent(at_ms, kind, generation, member_count=member_count, duration_ms=duration_ms))


class GroupMemory:
    """State of a group that exists only in memory. It survives a migration of the group, but no new coordinator."""

    __slots__ = ("_last_change", "seen_acls", "seen_topics", "timeline", "unstorable_epoch")

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.seen_topics: object = None
        """The cluster's topics with which the target of a consumer group was last compared."""
        self.seen_acls: object = None
        """The ACLs by which the patterns of a consumer group were last resolved; None: without ACLs."""
        self.unstorable_epoch = 0
        """The epoch of a consumer group whose target does not fit into the log; 0: there was none."""
        self._last_change = (NOTHING, NOTHING, NOTHING, NOTHING)

    def changes(self, had: PartitionSet, has: PartitionSet) -> tuple[PartitionSet, PartitionSet]:
        """Return `has.changes_from(had)`. A decision needs it twice: in its draft, and when it is replayed."""
        before, after, gained, lost = self._last_change
        if before is not had or after is not has:
            gained, lost = has.changes_from(had)
            self._last_change = had, has, gained, lost
        return gained, lost


class Group(Protocol):
    group_id: str

    @property
    def timeline(self) -> Timeline: ...

    @property
    def type_name(self) -> str:
        """The type as in ListGroups: classic or consumer."""
        ...

    @property
    def protocol_type(self) -> str: ...

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members and may be deleted. Ids that were only handed out do not count."""
        ...

    def check_commit(self, committer: OffsetCommitter, partitions: Iterable[tuple[Uuid | None, int]]) -> None:
        """Raise KafkaError if the committer may not commit. A partition of a deleted topic has no topic id."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError if the group does not have the member in this epoch."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Return whether members read the topic; True if that is unknown."""
        ...

    def expires_offset(self, topic: str, offset: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
        """Return whether the offset has not been needed for `retention_ms`."""
        ...

    def waiting(self) -> list[Completion]:
        """Return the completions of parked requests."""
        ...
