"""Records of consumer groups (KIP-848) in __consumer_offsets, byte for byte as Apache Kafka writes them.

    3 group epoch · 5 member · 6 target epoch · 7 target of a member · 8 assignment of a member · 16 regular expression

A record without a value forgets its key. The older record 4 (topics as the group saw them) is read and skipped: the
hash in record 3 has taken its place.
"""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Protocol

from sskafka.groups.assignors import Partitions
from sskafka.groups.classic_member import Client
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.consumer_member import ClassicSide, ConsumerMember, MemberState
from sskafka.groups.log_records import decode_key, decode_value, encode_key, encode_value, record_type
from sskafka.model.coordination import StateRecord
from sskafka.model.ids import Uuid
from sskafka.wire.messages import group_records as wire

EPOCH, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX = 3, 4, 5, 6, 7, 8, 16
TYPES = {EPOCH, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX}
_VERSION = 0

_KEYS = {
    EPOCH: wire.ConsumerGroupMetadataKey,
    PARTITION_METADATA: wire.ConsumerGroupPartitionMetadataKey,
    MEMBER: wire.ConsumerGroupMemberMetadataKey,
    TARGET_EPOCH: wire.ConsumerGroupTargetAssignmentMetadataKey,
    TARGET: wire.ConsumerGroupTargetAssignmentMemberKey,
    CURRENT: wire.ConsumerGroupCurrentMemberAssignmentKey,
    REGEX: wire.ConsumerGroupRegularExpressionKey,
}


# -- writing


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> StateRecord:
    return _record(wire.ConsumerGroupMetadataKey(group_id), wire.ConsumerGroupMetadataValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerMember) -> StateRecord:
    classic = member.classic
    value = wire.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client.client_id,
        client_host=member.client.host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else wire.ClassicMemberMetadata(
            classic.session_timeout_ms, [wire.ClassicProtocol(name, metadata) for name, metadata in classic.protocols]
        ),
    )
    return _record(wire.ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def current_record(group_id: str, member: ConsumerMember) -> StateRecord:
    value = wire.ConsumerGroupCurrentMemberAssignmentValue(
        member.epoch,
        member.previous_epoch,
        member.state,
        _with_epochs(member, member.assigned),
        _with_epochs(member, member.pending_revocation),
    )
    return _record(wire.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _with_epochs(member: ConsumerMember, partitions: Partitions) -> list[wire.TopicPartitions]:
    epochs = member.assignment_epochs
    return [
        wire.TopicPartitions(topic, indexes, [epochs.get((topic, index), 0) for index in indexes])
        for topic, indexes in by_topic(partitions)
    ]


def target_record(group_id: str, member_id: str, target: Partitions) -> StateRecord:
    value = wire.ConsumerGroupTargetAssignmentMemberValue(
        [wire.TopicPartition(topic, indexes) for topic, indexes in by_topic(target)]
    )
    return _record(wire.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> StateRecord:
    value = wire.ConsumerGroupTargetAssignmentMetadataValue(epoch, now_ms)
    return _record(wire.ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def regex_record(group_id: str, regex: str, topics: Iterable[str], now_ms: int) -> StateRecord:
    value = wire.ConsumerGroupRegularExpressionValue(sorted(topics), 0, now_ms)
    return _record(wire.ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> StateRecord:
    return _tombstone(wire.ConsumerGroupRegularExpressionKey(group_id, regex))


def member_tombstones(group_id: str, member_id: str) -> list[StateRecord]:
    return [
        _tombstone(wire.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        _tombstone(wire.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        _tombstone(wire.ConsumerGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstones(group: ConsumerGroup) -> list[StateRecord]:
    """Members first: what is left of a group that is cut off in the middle is still a group."""
    group_id = group.group_id
    return [
        *(record for member_id in group.members for record in member_tombstones(group_id, member_id)),
        *(regex_tombstone(group_id, regex) for regex in group.regex_topics),
        _tombstone(wire.ConsumerGroupTargetAssignmentMetadataKey(group_id)),
        _tombstone(wire.ConsumerGroupMetadataKey(group_id)),
    ]


def by_topic(partitions: Partitions) -> list[tuple[Uuid, list[int]]]:
    topics: dict[Uuid, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return list(topics.items())


def _record(key: object, value: object) -> StateRecord:
    return StateRecord(encode_key(key), encode_value(value, _VERSION))


def _tombstone(key: object) -> StateRecord:
    return StateRecord(encode_key(key), None)


# -- reading


def group_of(record: StateRecord) -> str:
    return str(decode_key(_KEYS[record_type(record.key)], record.key).group_id)


def replay(group: ConsumerGroup, record: StateRecord) -> None:
    kind = record_type(record.key)
    key = decode_key(_KEYS[kind], record.key)
    match kind:
        case 3:
            _replay_epoch(group, record.value)
        case 5:
            _replay_member(group, key.member_id, record.value)
        case 6:
            _replay_target_epoch(group, record.value)
        case 7:
            _replay_target(group, key.member_id, record.value)
        case 8:
            _replay_current(group, key.member_id, record.value)
        case 16:
            _replay_regex(group, key.regular_expression, record.value)


def _replay_epoch(group: ConsumerGroup, value: bytes | None) -> None:
    if value is not None:
        decoded = decode_value(wire.ConsumerGroupMetadataValue, value)
        group.epoch, group.metadata_hash = decoded.epoch, decoded.metadata_hash


def _replay_member(group: ConsumerGroup, member_id: str, value: bytes | None) -> None:
    if value is None:
        group.replay_member_gone(member_id)
        return
    decoded = decode_value(wire.ConsumerGroupMemberMetadataValue, value)
    classic = decoded.classic_member_metadata
    known = group.members.get(member_id, ConsumerMember(member_id))
    group.replay_member(
        known._replace(
            instance_id=decoded.instance_id,
            rack_id=decoded.rack_id,
            client=Client(decoded.client_id, decoded.client_host),
            topic_names=frozenset(decoded.subscribed_topic_names),
            topic_regex=decoded.subscribed_topic_regex or "",
            rebalance_timeout_ms=decoded.rebalance_timeout_ms,
            server_assignor=decoded.server_assignor,
            classic=None
            if classic is None
            else ClassicSide(
                classic.session_timeout_ms, tuple((item.name, item.metadata) for item in classic.supported_protocols)
            ),
        )
    )


def _replay_target_epoch(group: ConsumerGroup, value: bytes | None) -> None:
    if value is not None:
        decoded = decode_value(wire.ConsumerGroupTargetAssignmentMetadataValue, value)
        group.target_epoch, group.assigned_at_ms = decoded.assignment_epoch, decoded.assignment_timestamp


def _replay_target(group: ConsumerGroup, member_id: str, value: bytes | None) -> None:
    if value is None:
        group.target.pop(member_id, None)
        return
    decoded = decode_value(wire.ConsumerGroupTargetAssignmentMemberValue, value)
    group.target[member_id] = partitions_of(decoded.topic_partitions)


def _replay_current(group: ConsumerGroup, member_id: str, value: bytes | None) -> None:
    """Forgetting the assignment of a member that stays makes it one that has just joined."""
    known = group.members.get(member_id)
    if value is None:
        if known is not None:
            group.replay_member(ConsumerMember(*known[:9]))
        return
    decoded = decode_value(wire.ConsumerGroupCurrentMemberAssignmentValue, value)
    group.replay_member(
        (known or ConsumerMember(member_id))._replace(
            epoch=decoded.member_epoch,
            previous_epoch=decoded.previous_member_epoch,
            state=MemberState(decoded.state),
            assigned=partitions_of(decoded.assigned_partitions),
            pending_revocation=partitions_of(decoded.partitions_pending_revocation),
            assignment_epochs=MappingProxyType(
                _epochs_of([*decoded.assigned_partitions, *decoded.partitions_pending_revocation], decoded.member_epoch)
            ),
        )
    )


def _epochs_of(topics: Iterable[wire.TopicPartitions], member_epoch: int) -> dict[tuple[Uuid, int], int]:
    """Software older than Kafka 4.2 wrote none: then all partitions are as old as the member's epoch."""
    epochs: dict[tuple[Uuid, int], int] = {}
    for topic in topics:
        given = topic.assignment_epochs or ()
        if len(given) != len(topic.partitions):
            given = [max(member_epoch, 0)] * len(topic.partitions)
        epochs.update(((topic.topic_id, index), epoch) for index, epoch in zip(topic.partitions, given, strict=True))
    return epochs


def _replay_regex(group: ConsumerGroup, regex: str, value: bytes | None) -> None:
    topics = None if value is None else decode_value(wire.ConsumerGroupRegularExpressionValue, value).topics
    group.replay_regex(regex, topics)


class OfTopic(Protocol):
    """Partitions of one topic, as several messages have them."""

    topic_id: Uuid
    partitions: list[int]


def partitions_of(topics: Iterable[OfTopic]) -> Partitions:
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)
