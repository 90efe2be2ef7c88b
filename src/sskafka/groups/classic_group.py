"""A classic group: its members, its generation, and its state in a rebalance.

    from                     to                    when
    ───────────────────────  ────────────────────  ─────────────────────────────────────────────────────────────
    Empty                    PreparingRebalance    the first member joins; the group waits for others
    Stable, Completing       PreparingRebalance    a member joins, leaves, times out or changes
    PreparingRebalance       CompletingRebalance   all have rejoined, or the rebalance timed out: a new
                                                   generation begins, and its leader has to assign
    PreparingRebalance       Empty                 no members are left
    CompletingRebalance      Stable                the leader has sent the assignment

The log has the last completed generation: its members, protocol, leader and assignments. `replay` takes it over.
Everything else is soft state, as in Kafka: members that join, parked requests, protocols besides the selected one, and
a rebalance in progress with the number of its generation. Decisions change soft state directly; a new coordinator
starts without it.

Timers and rebalances are in classic_rebalance.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from sskafka.groups.group import CLASSIC, UNKNOWN_MEMBER, GroupMemory, OffsetCommitter, Timeline
from sskafka.groups.members import ClassicMember, Client, Protocols
from sskafka.groups.offsets import NO_TIMESTAMP, CommittedOffset
from sskafka.groups.subscription import CONSUMER_PROTOCOL, subscribed_topics
from sskafka.model.coordination import Completion
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid
from sskafka.wire.messages.group_records import GroupMetadataValue, MemberMetadata


class State(StrEnum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    """The state that clients see for a group that does not exist."""


_MAY_COME_FROM = {
    State.PREPARING: {State.EMPTY, State.STABLE, State.COMPLETING},
    State.COMPLETING: {State.PREPARING},
}
"""The transitions that decisions make. A group becomes Stable or Empty by `replay` only."""


class StaticReplacement(NamedTuple):
    """A static member that comes back under a new member id, in the place of the member with the old one."""

    old: ClassicMember
    member: ClassicMember
    reason: str
    at_ms: int


class ClassicGroup:
    def __init__(self, group_id: str, now_ms: int = NO_TIMESTAMP, memory: GroupMemory | None = None) -> None:
        self.group_id = group_id
        self.memory = memory or GroupMemory()
        self.state = State.EMPTY
        self.previous_state = State.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending_members: set[str] = set()
        """Member ids that were handed out (MEMBER_ID_REQUIRED) and have not been used to join yet."""
        self.pending_sync: set[str] = set()
        """Members that have not sent SyncGroup in this generation yet."""
        self.was_joined_lately = False
        """Whether a member has joined since the first rebalance was last extended."""
        self._protocol_counts: Counter[str] = Counter()
        self._topics: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id!r}, {self.state}, {len(self.members)} members)"

    @property
    def timeline(self) -> Timeline:
        return self.memory.timeline

    # -- what kinds of groups have in common

    @property
    def type_name(self) -> str:
        return CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def check_commit(self, committer: OffsetCommitter, partitions: Iterable[tuple[Uuid | None, int]]) -> None:
        is_alone = committer.generation < 0 and committer.member_id == UNKNOWN_MEMBER and committer.instance_id is None
        if committer.generation < 0 and self.state is State.EMPTY:
            return  # an administrator, or a consumer with manually assigned partitions
        if not is_alone:
            self.check_member(committer.member_id, committer.instance_id)
            self.check_generation(committer.generation)
        elif not committer.is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.is_transactional and self.state is State.COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow every fetch."""

    def is_subscribed(self, topic: str) -> bool:
        return self._topics is None or topic in self._topics

    def expires_offset(self, topic: str, offset: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
        if offset.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= offset.expire_timestamp_ms and self.state is State.EMPTY
        since_ms = self._unneeded_since_ms(topic, offset)
        return since_ms is not None and now_ms - since_ms >= retention_ms

    def _unneeded_since_ms(self, topic: str, offset: CommittedOffset) -> int | None:
        """Return the time since which the offset has not been needed, or None if it may be needed."""
        if not self.protocol_type and self.state is State.EMPTY:
            return offset.commit_timestamp_ms  # it never had members: only commits show when it was used
        if self.state is State.EMPTY:
            return max(self.state_timestamp_ms, offset.commit_timestamp_ms)
        is_unread = self.protocol_type == CONSUMER_PROTOCOL and not self.is_subscribed(topic)
        return offset.commit_timestamp_ms if self.state is State.STABLE and is_unread else None

    def waiting(self) -> list[Completion]:
        found: list[Completion] = []
        for member in self.members.values():
            found += [
                completion for completion in (member.awaiting_join, member.awaiting_sync) if completion is not None
            ]
        return found

    # -- checks

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raise KafkaError unless the member exists and, if it is static, has the current id of its instance."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols can join: all members must have one in common."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        if not self.members:
            return bool(protocols) and protocol_type == (self.protocol_type or protocol_type)
        is_common = any(self._protocol_counts[name] == len(self.members) for name, _ in protocols)
        return protocol_type == self.protocol_type and is_common

    def accepts(self, member_id: str, size_max: int) -> bool:
        """Return whether the group has room. During a rebalance only members that have rejoined count, because the
        others may be dropped at its end."""
        if self.state is State.PREPARING:
            member = self.members.get(member_id)
            is_in_it = member is not None and member.awaiting_join is not None
            return is_in_it or len(self.members) < size_max or self.awaiting_join_count < size_max
        is_counted = self.state in {State.COMPLETING, State.STABLE}
        return not is_counted or member_id in self.members or len(self.members) < size_max

    # -- questions

    @property
    def awaiting_join_count(self) -> int:
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def have_all_joined(self) -> bool:
        return not self.pending_members and all(member.awaiting_join for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        return member_id == self.leader_id

    # -- changes

    def transition_to(self, state: State, now_ms: int) -> None:
        assert self.state in _MAY_COME_FROM[state], f"{self.group_id}: from {self.state} to {state}"
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    def add_member(self, member: ClassicMember, protocol_type: str) -> None:
        assert member.member_id not in self.members
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.pending_members.discard(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._count(member.protocols, 1)

    def remove_member(self, member_id: str) -> ClassicMember:
        member = self.members.pop(member_id)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        self._count(member.protocols, -1)
        self.pending_sync.discard(member_id)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def members_after(self, replacement: StaticReplacement) -> list[ClassicMember]:
        """Return the members that the group has once `replacement` has happened."""
        return [*(member for member in self.members.values() if member is not replacement.old), replacement.member]

    def replace_static_member(self, replacement: StaticReplacement) -> None:
        """Put the new member in the place of the old one; it leads the group if the old one did."""
        was_leader = self.is_leader(replacement.old.member_id)
        self.remove_member(replacement.old.member_id)
        self.add_member(replacement.member, self.protocol_type)
        if was_leader:
            self.leader_id = replacement.member.member_id

    def change_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def _count(self, protocols: Protocols, by: int) -> None:
        for name, _ in protocols:
            self._protocol_counts[name] += by

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has rejoined, else elect the first member that has. Return False if none has."""
        leader = self.members.get(self.leader_id or UNKNOWN_MEMBER)
        if leader is not None and leader.awaiting_join is not None:
            return True
        joined = next((member for member in self.members.values() if member.awaiting_join is not None), None)
        if joined is not None:
            self.leader_id = joined.member_id
        return joined is not None

    @property
    def next_generation(self) -> int:
        return self.generation % (2**31 - 1) + 1

    def begin_generation(self, now_ms: int) -> None:
        """Begin a generation of the members that have joined. It is written when the leader has assigned."""
        self.generation = self.next_generation
        self.pending_sync = set()
        self.protocol_name = select_protocol(self.members.values())
        self.transition_to(State.COMPLETING, now_ms)
        self._note_topics()

    def _note_topics(self) -> None:
        if self.protocol_type != CONSUMER_PROTOCOL:
            self._topics = None
        else:
            self._topics = subscribed_topics(self._subscriptions())

    def _subscriptions(self) -> Iterable[bytes]:
        return (member.metadata(self.protocol_name) for member in self.members.values())

    # -- the log

    def to_value(self) -> GroupMetadataValue:
        return GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=[self._described(member) for member in self.members.values()],
        )

    def assigned_value(self, assignments: Mapping[str, bytes], now_ms: int) -> GroupMetadataValue:
        """Return the group as it is once its leader has assigned. Members without an assignment get an empty one."""
        value = self.to_value()
        value.current_state_timestamp = now_ms
        for member in value.members:
            member.assignment = assignments.get(member.member_id, b"")
        return value

    def replaced_value(self, replacement: StaticReplacement) -> GroupMetadataValue:
        """Return the same generation with the new static member in the place of the old one."""
        value = self.to_value()
        value.members = [self._described(member) for member in self.members_after(replacement)]
        if self.is_leader(replacement.old.member_id):
            value.leader = replacement.member.member_id
        return value

    def emptied_value(self, now_ms: int) -> GroupMetadataValue:
        """Return the generation without members that follows when the last member is gone."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.next_generation,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        )

    def _described(self, member: ClassicMember) -> MemberMetadata:
        return MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client.client_id,
            client_host=member.client.host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(self.protocol_name),
            assignment=member.assignment,
        )

    @classmethod
    def from_value(cls, group_id: str, value: GroupMetadataValue, memory: GroupMemory | None = None) -> "ClassicGroup":
        group = cls(group_id, value.current_state_timestamp, memory)
        group.replay(value)
        return group

    def replay(self, value: GroupMetadataValue, replacement: StaticReplacement | None = None) -> None:
        """Take over a generation that was completed. Soft state of members that are in it stays.

        `replacement` has the soft state of the static member that is new in it."""
        known, self.members = self.members, {}
        if replacement is not None:
            known[replacement.member.member_id] = replacement.member
            self.pending_sync.discard(replacement.old.member_id)
        self.static_members, self._protocol_counts, self.leader_id = {}, Counter(), None
        self.generation, self.protocol_type, self.protocol_name = value.generation, value.protocol_type, value.protocol
        for stored in value.members:
            member = known.get(stored.member_id)
            if member is None or (value.protocol, stored.subscription) not in member.protocols:
                member = _stored_member(stored, value.protocol)
            member.assignment = stored.assignment
            self.add_member(member, value.protocol_type)
        if value.leader in self.members:
            self.leader_id = value.leader
        self.previous_state, self.state = self.state, State.STABLE if self.members else State.EMPTY
        self.state_timestamp_ms = value.current_state_timestamp
        self._note_topics()


def select_protocol(members: Collection[ClassicMember]) -> str:
    """Return the protocol with the most votes. Each member votes for its most preferred protocol that all support."""
    counts = Counter(name for member in members for name, _ in member.protocols)
    candidates = {name for name, count in counts.items() if count == len(members)}
    assert candidates, "the members have no protocol in common"
    votes = Counter(member.vote(candidates) for member in members)
    return votes.most_common(1)[0][0]


def _stored_member(stored: MemberMetadata, protocol: str | None) -> ClassicMember:
    return ClassicMember(
        stored.member_id,
        stored.group_instance_id,
        Client(stored.client_id, stored.client_host),
        stored.session_timeout,
        stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout,
        ((protocol or "", stored.subscription),),
    )
