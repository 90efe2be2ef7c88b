"""Migration of a group: from classic to consumer when the first member uses the new protocol, and back when the last
such member is gone. Members stay in the group and keep their partitions.

    classic, no members          a tombstone removes the classic group; a new consumer group begins
    classic, with consumers      generation -> epochs; assignments -> targets; members keep the classic protocol
    consumer, classic members    epoch -> generation; members have to rejoin

`group.consumer.migration.policy` says which directions are allowed.
"""

from struct import Struct

from sskafka.groups import consumer_records, log_records
from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.classic_group import ClassicGroup, State, select_protocol
from sskafka.groups.classic_in_consumer import classic_assignment
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.consumer_records import Draft
from sskafka.groups.members import ClassicMember, ClassicSide, ConsumerMember
from sskafka.groups.partition_set import PartitionSet
from sskafka.groups.subscription import (
    BYTES_MAX,
    CONSUMER_PROTOCOL,
    LISTED_MAX,
    listed_count,
    read_subscription,
)
from sskafka.groups.topic_changes import topics_hash
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.codec import MalformedMessageError, decode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment

_INT16 = Struct(">h")
NEVER_ASSIGNED_MS = 0
"""The time of a target that the leader of the classic group computed: the coordinator may replace it at once."""


MALFORMED = "the embedded consumer protocol is malformed"
TOO_LARGE = "its subscriptions and assignments are too large"
CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade"
)


def not_upgraded(group: ClassicGroup, problem: str) -> KafkaError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group because {problem}."
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def upgraded(group: ClassicGroup, topics: Topics) -> Draft:
    """Return the consumer group that replaces `group`. Raise KafkaError if a member is not a consumer."""
    draft = Draft(ConsumerGroup(group.group_id, group.memory), (log_records.group_tombstone(group.group_id),))
    if not group.members:
        return draft
    _check_size(group)
    members = [_as_consumer(group, member, topics) for member in group.members.values()]
    group_id, epoch = group.group_id, group.generation
    names = frozenset().union(*(member.topic_names for member in members))
    return draft.plus(
        *(consumer_records.member_record(group_id, member) for member in members),
        consumer_records.epoch_record(group_id, epoch, topics_hash(topics, names)),
        *(consumer_records.target_record(group_id, member.member_id, member.assigned) for member in members),
        consumer_records.target_epoch_record(group_id, epoch, NEVER_ASSIGNED_MS),
        *(consumer_records.current_record(group_id, member) for member in members),
    )


def _check_size(group: ClassicGroup) -> None:
    """Raise KafkaError if the group is too large to be read in one turn. Its records would not fit into a batch."""
    topics = size_bytes = 0
    for member in group.members.values():
        encoded = (_subscription_of(group, member), member.assignment)
        topics += sum(listed_count(each) or 0 for each in encoded)
        size_bytes += len(member.assignment) + sum(len(metadata) for _, metadata in member.protocols)
    if topics > LISTED_MAX or size_bytes > BYTES_MAX:
        raise not_upgraded(group, TOO_LARGE)


def _subscription_of(group: ClassicGroup, member: ClassicMember) -> bytes:
    return member.metadata(group.protocol_name) or member.protocols[0][1]


def _as_consumer(group: ClassicGroup, member: ClassicMember, topics: Topics) -> ConsumerMember:
    protocols = member.protocols
    subscription = read_subscription(_subscription_of(group, member))
    if subscription is None:
        raise not_upgraded(group, MALFORMED)
    upgraded_member = ConsumerMember(
        member.member_id,
        member.instance_id,
        subscription.rack_id or None,
        member.client,
        frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSide(member.session_timeout_ms, protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
    )
    return upgraded_member.owning(_assigned(group, member.assignment, topics), NOTHING, since=group.generation)


def _assigned(group: ClassicGroup, assignment: bytes, topics: Topics) -> Partitions:
    """Return the assigned partitions. Raise KafkaError for user data of a custom assignor, which would be lost."""
    if not assignment:
        return NOTHING
    decoded = _decoded(assignment)
    if decoded is None:
        raise not_upgraded(group, MALFORMED)
    if decoded.user_data:
        raise not_upgraded(group, CUSTOM_ASSIGNOR)
    return PartitionSet.of_topics(
        (topics[item.topic].topic_id, item.partitions) for item in decoded.assigned_partitions if item.topic in topics
    )


def _decoded(assignment: bytes) -> ConsumerProtocolAssignment | None:
    if len(assignment) < _INT16.size:
        return None
    version = min(int(_INT16.unpack_from(assignment)[0]), ConsumerProtocolAssignment.SCHEMA.versions.last)
    try:
        return decode(ConsumerProtocolAssignment, version, assignment, _INT16.size, allow_trailing=True)
    except MalformedMessageError:
        return None


def downgraded(group: ConsumerGroup, topics: Topics, now_ms: int) -> tuple[ClassicGroup, list[log_records.GroupRecord]]:
    """Return the classic group that replaces `group`, and the records. All members must use the classic protocol."""
    made = ClassicGroup(group.group_id, now_ms, group.memory)
    made.generation = group.epoch
    for member in group.members.values():
        assert member.classic is not None
        made.add_member(_as_classic(member, topics), CONSUMER_PROTOCOL)
    if not made.members:
        return made, consumer_records.group_tombstones(group, successor=made)
    made.protocol_name = select_protocol(made.members.values())
    made.state = State.STABLE
    record = log_records.group_record(made.group_id, made.to_value(), successor=made)
    return made, [*consumer_records.group_tombstones(group), record]


def _as_classic(member: ConsumerMember, topics: Topics) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client,
        member.classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        member.classic.protocols,
        classic_assignment(member, topics),
    )
