"""Records of consumer groups (KIP-848): creation and replay.

    3 group epoch · 5 member · 6 target epoch · 7 target of a member · 8 assignment of a member · 16 regular expression

A record without a value is a tombstone.
"""

from collections import defaultdict
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from sskafka.groups.assignors import Partitions
from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.encoded_partitions import encode_names, encoded_topics, encoded_with_epochs
from sskafka.groups.log_records import GroupRecord, GroupResult, Record
from sskafka.groups.members import ClassicSide, Client, ConsumerMember, MemberState
from sskafka.groups.partition_set import MutablePartitionSet, of_topics_in_steps
from sskafka.model.computation import Computation, finished
from sskafka.model.coordination import PARKED, CoordinatorResult
from sskafka.model.ids import Uuid
from sskafka.wire.messages import group_records as wire

TOPICS_PER_STEP = 1_000

# -- writing


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    return _record(wire.ConsumerGroupMetadataKey(group_id), wire.ConsumerGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerMember, topic_names: list[str] | None = None) -> GroupRecord:
    """`topic_names`: those of the member, if they were encoded before."""
    classic = member.classic
    value = wire.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client.client_id,
        client_host=member.client.host,
        subscribed_topic_names=sorted(member.topic_names) if topic_names is None else topic_names,
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else wire.ClassicMemberMetadata(
            classic.session_timeout_ms, [wire.ClassicProtocol(name, metadata) for name, metadata in classic.protocols]
        ),
    )
    return _record(wire.ConsumerGroupMemberMetadataKey(group_id, member.member_id), value, kept=member.topic_names)


def current_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    value = wire.ConsumerGroupCurrentMemberAssignmentValue(
        member.epoch,
        member.previous_epoch,
        member.state,
        encoded_with_epochs(member.assigned, member.assignment_epochs, are_all=not member.pending_revocation),
        encoded_with_epochs(member.pending_revocation, member.assignment_epochs, are_all=not member.assigned),
    )
    return _record(wire.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value, kept=member)


def target_record(
    group_id: str,
    member_id: str,
    target: Partitions,
    value: wire.ConsumerGroupTargetAssignmentMemberValue | None = None,
) -> GroupRecord:
    """`value`: the target, if it was encoded before."""
    if value is None:
        value = wire.ConsumerGroupTargetAssignmentMemberValue(encoded_topics(target, wire.TopicPartition))
    return _record(wire.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value, kept=target)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> GroupRecord:
    value = wire.ConsumerGroupTargetAssignmentMetadataValue(epoch, now_ms)
    return _record(wire.ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def regex_record(group_id: str, regex: str, topics: frozenset[str], now_ms: int) -> GroupRecord:
    names = finished(encode_names(sorted(topics)))
    value = wire.ConsumerGroupRegularExpressionValue(names, 0, now_ms)
    return _record(wire.ConsumerGroupRegularExpressionKey(group_id, regex), value, kept=topics)


def regex_tombstone(group_id: str, regex: str) -> GroupRecord:
    return _tombstone(wire.ConsumerGroupRegularExpressionKey(group_id, regex))


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    return [
        _tombstone(wire.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        _tombstone(wire.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        _tombstone(wire.ConsumerGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstones(group: ConsumerGroup, successor: ClassicGroup | None = None) -> list[GroupRecord]:
    """Return tombstones of the whole group. Members come first, so that a part of the records leaves a valid group."""
    group_id = group.group_id
    return [
        *(record for member_id in group.members for record in member_tombstones(group_id, member_id)),
        *(regex_tombstone(group_id, regex) for regex in group.regex_topics),
        _tombstone(wire.ConsumerGroupTargetAssignmentMetadataKey(group_id)),
        GroupRecord(wire.ConsumerGroupMetadataKey(group_id), None, successor),
    ]


_record = GroupRecord
_tombstone = GroupRecord


# -- reading


def replay(group: ConsumerGroup, record: GroupRecord) -> None:
    """Apply a record to the group. The shard handles the tombstone of the group itself."""
    key, value = record.key, record.value
    match key:
        case wire.ConsumerGroupMetadataKey():
            _replay_epoch(group, value)
        case wire.ConsumerGroupMemberMetadataKey():
            _replay_member(group, key.member_id, value, record.kept)
        case wire.ConsumerGroupTargetAssignmentMetadataKey():
            _replay_target_epoch(group, value)
        case wire.ConsumerGroupTargetAssignmentMemberKey():
            _replay_target(group, key.member_id, value, record.kept)
        case wire.ConsumerGroupCurrentMemberAssignmentKey():
            _replay_current(group, key.member_id, value, record.kept)
        case wire.ConsumerGroupRegularExpressionKey():
            topics = None if value is None else value.topics if record.kept is None else record.kept
            group.replay_regex(key.regular_expression, topics)


def _replay_epoch(group: ConsumerGroup, value: wire.ConsumerGroupMetadataValue | None) -> None:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _replay_member(
    group: ConsumerGroup,
    member_id: str,
    value: wire.ConsumerGroupMemberMetadataValue | None,
    topic_names: frozenset[str] | None,
) -> None:
    if value is None:
        group.replay_member_gone(member_id)
        return
    classic = value.classic_member_metadata
    known = group.members.get(member_id, ConsumerMember(member_id))
    if topic_names is None:
        topic_names = frozenset(value.subscribed_topic_names)
    group.replay_member(
        known._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client=Client(value.client_id, value.client_host),
            topic_names=topic_names,
            topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicSide(
                classic.session_timeout_ms, tuple((item.name, item.metadata) for item in classic.supported_protocols)
            ),
        )
    )


def _replay_target_epoch(group: ConsumerGroup, value: wire.ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
    if value is not None:
        group.target_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp


def _replay_target(
    group: ConsumerGroup,
    member_id: str,
    value: wire.ConsumerGroupTargetAssignmentMemberValue | None,
    target: Partitions | None,
) -> None:
    if value is None:
        group.target.pop(member_id, None)
    else:
        group.target[member_id] = partitions_of(value.topic_partitions) if target is None else target


def _replay_current(
    group: ConsumerGroup,
    member_id: str,
    value: wire.ConsumerGroupCurrentMemberAssignmentValue | None,
    member: ConsumerMember | None,
) -> None:
    """Replay the current assignment. Its tombstone makes the member one that has just joined."""
    known = group.members.get(member_id)
    if value is None:
        if known is not None:
            group.replay_member(known.assigned_as(ConsumerMember(member_id)))
        return
    owner = finished(_owner_in(value)) if member is None else member
    group.replay_member((known or ConsumerMember(member_id)).assigned_as(owner))


def kept_of(value: Any) -> Computation[Any]:
    """Return what a group keeps of a long value (`GroupRecord.kept`); None if replaying it takes no time."""
    match value:
        case wire.ConsumerGroupTargetAssignmentMemberValue():
            return (yield from _partitions_in(value.topic_partitions))
        case wire.ConsumerGroupCurrentMemberAssignmentValue():
            return (yield from _owner_in(value))
        case _:
            return None


def _owner_in(value: wire.ConsumerGroupCurrentMemberAssignmentValue) -> Computation[ConsumerMember]:
    """Return a member with the fields of the record and no others."""
    owned = [*value.assigned_partitions, *value.partitions_pending_revocation]
    return ConsumerMember(
        "",
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=(yield from _partitions_in(value.assigned_partitions)),
        pending_revocation=(yield from _partitions_in(value.partitions_pending_revocation)),
        assignment_epochs=MappingProxyType((yield from _epochs_of(owned, value.member_epoch))),
    )


def _epochs_of(topics: Iterable[wire.TopicPartitions], member_epoch: int) -> Computation[dict[int, Partitions]]:
    """Return the assignment epochs. Kafka before 4.2 wrote none: then the member epoch counts for all partitions."""
    epochs: defaultdict[int, MutablePartitionSet] = defaultdict(MutablePartitionSet)
    for number, topic in enumerate(topics, 1):
        if not number % TOPICS_PER_STEP:
            yield
        epochs_of_topic = topic.assignment_epochs or []
        if len(epochs_of_topic) != len(topic.partitions):
            epochs[max(member_epoch, 0)].add_all(topic.topic_id, topic.partitions)
        elif len(set(epochs_of_topic)) == 1:
            epochs[epochs_of_topic[0]].add_all(topic.topic_id, topic.partitions)
        else:
            for index, epoch in zip(topic.partitions, epochs_of_topic, strict=True):
                epochs[epoch].add(topic.topic_id, index)
    return {epoch: partitions.frozen() for epoch, partitions in epochs.items() if partitions}


class Draft(NamedTuple):
    """A decision about a consumer group in the making: its records so far, and the group as they leave it.

    A draft never changes; each step of a decision returns a new one. The group that the decision started from stays as
    it is until the runtime replays the same records on it."""

    group: ConsumerGroup
    records: tuple[Record, ...] = ()
    effects: tuple[object, ...] = ()

    def plus(self, *records: GroupRecord) -> "Draft":
        """Return the draft with further records, replayed on a copy of the group."""
        if not records:
            return self
        group = self.group.copy()
        for record in records:
            replay(group, record)
        return Draft(group, self.records + records, self.effects)

    def with_effect(self, effect: object) -> "Draft":
        return Draft(self.group, self.records, (*self.effects, effect))

    def followed_by(self, decision: GroupResult) -> "Draft":
        """Return the draft with a decision about the classic group that takes the place of this group."""
        return Draft(self.group, (*self.records, *decision.records), (*self.effects, *decision.effects))

    def decided(self, answer: Any = PARKED) -> GroupResult:
        return CoordinatorResult(self.records, answer, self.effects)


class TopicPartitionsMessage(Protocol):
    """The partitions of one topic, which several messages have."""

    topic_id: Uuid
    partitions: list[int]


def partitions_of(topics: Iterable[TopicPartitionsMessage]) -> Partitions:
    return finished(_partitions_in(topics))


def _partitions_in(topics: Iterable[TopicPartitionsMessage]) -> Computation[Partitions]:
    return (yield from of_topics_in_steps((topic.topic_id, topic.partitions) for topic in topics))
