"""A consumer group (KIP-848): its members, their subscriptions and the target assignment.

    group epoch        1 in a new group; increases when a subscription or a subscribed topic changes or a member leaves
    target epoch       the group epoch of the target assignment; it follows with the next heartbeat, but not within the
                       assignment interval of the group, and later if the group is large; 1 in a new group, without
                       partitions
    member epoch       the target epoch that the member has reached; the group is stable when all have the newest

    Empty         no members                            Assigning      the target is older than the group epoch
    Reconciling   members have not reached the target   Stable         all members have reached the target

The state follows from the members; it changes only by replaying records.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.group import CONSUMER, UNKNOWN_MEMBER, GroupMemory, OffsetCommitter, Timeline
from sskafka.groups.members import ConsumerMember
from sskafka.groups.offsets import NO_TIMESTAMP, CommittedOffset
from sskafka.groups.partition_set import MutablePartitionSet
from sskafka.groups.subscription import CONSUMER_PROTOCOL
from sskafka.model.coordination import Completion
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid


class Topic(NamedTuple):
    topic_id: Uuid
    partition_count: int


Topics = Mapping[str, Topic]
"""The topics of the cluster that can be subscribed to, by name."""


class ConsumerGroup:
    def __init__(self, group_id: str, memory: GroupMemory | None = None) -> None:
        self.group_id = group_id
        self.memory = memory or GroupMemory()
        self.epoch = 1
        self.metadata_hash = 0
        """Hash of the subscribed topics at the beginning of the epoch."""
        self.target_epoch = 1
        """The members of a new group have no partitions in epoch 1. Its first assignment may take some turns."""
        self.assigned_at_ms = 0
        """Time of the target assignment; 0 if there is none yet."""
        self.target: dict[str, Partitions] = {}
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.regex_topics: dict[str, frozenset[str]] = {}
        """The topics that the members' regular expressions matched when they were last resolved."""
        self._owned = MutablePartitionSet()
        """The partitions of all members."""
        self._shared = MutablePartitionSet()
        """Partitions that more than one member has or had: the leader of a classic group may assign one twice."""
        self._subscribed: frozenset[str] | None = None

    def copy(self) -> "ConsumerGroup":
        """Return a copy, for decisions. The `GroupMemory` is shared."""
        made = ConsumerGroup(self.group_id, self.memory)
        made.epoch, made.metadata_hash = self.epoch, self.metadata_hash
        made.target_epoch, made.assigned_at_ms = self.target_epoch, self.assigned_at_ms
        made.target, made.members = self.target.copy(), self.members.copy()
        made.static_members, made.regex_topics = self.static_members.copy(), self.regex_topics.copy()
        made._owned, made._shared, made._subscribed = self._owned.copy(), self._shared.copy(), self._subscribed
        return made

    @property
    def timeline(self) -> Timeline:
        return self.memory.timeline

    def __repr__(self) -> str:
        return f"ConsumerGroup({self.group_id!r}, {self.state_name}, {len(self.members)} members)"

    # -- what kinds of groups have in common

    @property
    def type_name(self) -> str:
        return CONSUMER

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        return "Stable" if self.is_stable else "Reconciling"

    @property
    def is_stable(self) -> bool:
        return all(member.is_reconciled_to(self.epoch) for member in self.members.values())

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_commit(self, committer: OffsetCommitter, partitions: Iterable[tuple[Uuid | None, int]]) -> None:
        if committer.generation < 0 and not self.members:
            return
        if committer.is_transactional and committer.is_unnamed:
            return
        member = self.member(committer.member_id)
        if committer.is_too_old_for_epochs and member.classic is None:
            text = "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
        if committer.generation != member.epoch:
            is_stale = committer.generation > member.epoch or not all(
                member.may_commit(partition, committer.generation) for partition in partitions
            )
            if is_stale:
                raise KafkaError(_stale(member, committer.is_transactional))

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or UNKNOWN_MEMBER)
        if member.epoch != member_epoch:
            raise KafkaError(_stale(member, is_transactional=False))

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.subscribed_topics

    def expires_offset(self, topic: str, offset: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
        if not self.is_empty and self.is_subscribed(topic):
            return False
        if offset.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= offset.expire_timestamp_ms
        return now_ms - offset.commit_timestamp_ms >= retention_ms

    def waiting(self) -> list[Completion]:
        return []  # heartbeats never wait

    # -- questions

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return found

    def free_for(self, member: ConsumerMember, partitions: Partitions) -> Partitions:
        """Return those of the partitions that no other member owns."""
        taken = self._owned.common(partitions)
        return partitions - (taken - self._owned_alone(member)) if taken else partitions

    def target_of(self, member: ConsumerMember) -> Partitions:
        return self.target.get(member.member_id, NOTHING)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        matched = self.regex_topics.get(member.topic_regex)
        return member.topic_names | matched if matched and member.topic_names else matched or member.topic_names

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topics of all members, computed on demand after a change."""
        if self._subscribed is None:
            names = {member.topic_names for member in self.members.values()}
            patterns = {member.topic_regex for member in self.members.values()}
            names.update(self.regex_topics[pattern] for pattern in patterns if pattern in self.regex_topics)
            self._subscribed = next(iter(names)) if len(names) == 1 else frozenset().union(*names)
        return self._subscribed

    def speaks_classic_only(self, members: Iterable[ConsumerMember]) -> bool:
        return all(member.classic is not None for member in members)

    def preferred_assignor(self, members: Iterable[ConsumerMember], default: str) -> str:
        votes = Counter(member.server_assignor for member in members if member.server_assignor)
        return votes.most_common(1)[0][0] or default if votes else default

    # -- replay

    def replay_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        if before is None or before.subscription != member.subscription:
            self._subscribed = None
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._own(before, member)

    def replay_member_gone(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._subscribed = None
        self._own(member, None)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def replay_regex(self, regex: str, topics: Iterable[str] | None) -> None:
        self._subscribed = None
        if topics is None:
            self.regex_topics.pop(regex, None)
        else:
            self.regex_topics[regex] = frozenset(topics)

    def _own(self, before: ConsumerMember | None, after: ConsumerMember | None) -> None:
        """Update the partitions of all members after a member was replaced, added or removed."""
        had = NOTHING if before is None else before.owned
        has = NOTHING if after is None else after.owned
        if had == has:
            return
        gained, lost = self.memory.changes(had, has)
        self._shared.update(self._owned.common(gained))
        self._owned.remove(lost)
        self._owned.update(gained)
        if shared := self._shared.common(lost):
            for member in self.members.values():
                self._owned.update(member.owned & shared)

    def _owned_alone(self, member: ConsumerMember) -> Partitions:
        owned = member.owned
        return owned - self._shared.common(owned) if self._shared else owned


def _stale(member: ConsumerMember, is_transactional: bool) -> ErrorCode:
    """Return the error for a stale epoch. A transactional producer knows no member epochs and can only abort."""
    if is_transactional or member.classic is not None:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH
