"""The assignors that leaders of classic groups run, and the bytes in which members exchange subscriptions.

    range                as the coordinator's assignor of that name
    roundrobin           all partitions of all topics, in order, to one member after the other
    cooperative-sticky   as the coordinator's `uniform`: even shares, and members keep what they have. A partition that
                         another member still owns is assigned to nobody in this generation; it is revoked first

With `range` and `roundrobin` (eager) members revoke everything before they join again. With `cooperative-sticky` they
keep their partitions, and the members that had to revoke some join once more.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle, islice
from struct import Struct
from typing import NamedTuple, TypeAlias

from sskafka.client.group.membership import OwnedPartitions
from sskafka.groups.assignors import Assignment, Subscriber, assign_range, assign_uniform
from sskafka.groups.partition_set import PartitionSet
from sskafka.groups.subscription import read_subscription
from sskafka.model.ids import TopicPartition
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.messages import consumer_protocol as wire
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

COOPERATIVE_STICKY = "cooperative-sticky"

_INT16 = Struct(">h")
_VERSION = 3


class SubscribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    topics: frozenset[str]
    owned: OwnedPartitions = frozenset()
    generation: int = -1

    @property
    def sort_key(self) -> tuple[bool, str, str]:
        """Static members come first, in the order of their instance ids, as in Apache Kafka."""
        return self.instance_id is None, self.instance_id or "", self.member_id


Assigned: TypeAlias = dict[str, OwnedPartitions]
"""The partitions of each member id."""
_Assignor: TypeAlias = Callable[[Sequence[SubscribedMember], Mapping[str, int]], Assigned]


def _range(members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assigned:
    return _named(assign_range(_subscribers(members), _encoded(partition_counts)))


def _roundrobin(members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assigned:
    assigned: dict[str, set[TopicPartition]] = {member.member_id: set() for member in members}
    turns = cycle(sorted(members, key=lambda member: member.sort_key))
    for topic, count in sorted(partition_counts.items()):
        if not any(topic in member.topics for member in members):
            continue
        for index in range(count):
            chosen = next(member for member in islice(turns, len(members)) if topic in member.topics)
            assigned[chosen.member_id].add(TopicPartition(topic, index))
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


def _cooperative_sticky(members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assigned:
    members = _with_valid_ownership(members)
    owners = {partition: member.member_id for member in members for partition in member.owned}
    assigned = _named(assign_uniform(_subscribers(members), _encoded(partition_counts)))
    return {
        member_id: frozenset(partition for partition in partitions if owners.get(partition, member_id) == member_id)
        for member_id, partitions in assigned.items()
    }


def _with_valid_ownership(members: Sequence[SubscribedMember]) -> list[SubscribedMember]:
    """Drop claims of members that missed a generation: the member of the newest generation is the owner."""
    newest: dict[TopicPartition, int] = {}
    for member in members:
        for partition in member.owned:
            newest[partition] = max(newest.get(partition, -1), member.generation)
    return [
        member._replace(owned=frozenset(one for one in member.owned if newest[one] == member.generation))
        for member in members
    ]


def _subscribers(members: Sequence[SubscribedMember]) -> list[Subscriber]:
    """Return the members as the coordinator's assignors expect them. Encoded names take the place of topic ids."""
    ordered = sorted(members, key=lambda member: member.sort_key)
    return [
        Subscriber(
            member.member_id,
            f"{rank:08}",
            frozenset(topic.encode() for topic in member.topics),
            PartitionSet.of((partition.topic.encode(), partition.partition) for partition in member.owned),
        )
        for rank, member in enumerate(ordered)
    ]


def _encoded(partition_counts: Mapping[str, int]) -> dict[bytes, int]:
    return {topic.encode(): count for topic, count in sorted(partition_counts.items())}


def _named(assignment: Assignment) -> Assigned:
    return {
        member_id: frozenset(TopicPartition(topic.decode(), index) for topic, index in partitions)
        for member_id, partitions in assignment.items()
    }


STRATEGIES: dict[str, _Assignor] = {
    "range": _range,
    "roundrobin": _roundrobin,
    COOPERATIVE_STICKY: _cooperative_sticky,
}


# Bytes


def encode_subscription(
    topics: Iterable[str], owned: Iterable[TopicPartition], generation: int, rack_id: str | None
) -> bytes:
    subscription = ConsumerProtocolSubscription(
        topics=sorted(topics), owned_partitions=_by_topic(owned), generation_id=generation, rack_id=rack_id
    )
    return _INT16.pack(_VERSION) + encode(subscription, _VERSION)


def decode_member(member_id: str, instance_id: str | None, metadata: bytes) -> SubscribedMember:
    """Return a member of the group as its subscription describes it. Bytes of another format subscribe to nothing."""
    subscription = read_subscription(metadata)
    if subscription is None:
        return SubscribedMember(member_id, instance_id, frozenset())
    owned = _partitions(subscription.owned_partitions)
    return SubscribedMember(member_id, instance_id, frozenset(subscription.topics), owned, subscription.generation_id)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    assignment = ConsumerProtocolAssignment(assigned_partitions=_by_topic(partitions))
    return _INT16.pack(_VERSION) + encode(assignment, _VERSION)


def decode_assignment(assignment: bytes) -> OwnedPartitions:
    """Return the partitions; none if the bytes are empty, as those of a member without partitions may be.

    Raise MalformedMessageError for other bytes that are not an assignment."""
    if not assignment:
        return frozenset()
    if len(assignment) < _INT16.size:
        raise MalformedMessageError("an assignment is too short")
    version = min(int(_INT16.unpack_from(assignment)[0]), _VERSION)
    decoded = decode(ConsumerProtocolAssignment, version, assignment, _INT16.size, allow_trailing=True)
    return _partitions(decoded.assigned_partitions)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[wire.TopicPartition]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return [wire.TopicPartition(topic, indexes) for topic, indexes in by_topic.items()]


def _partitions(topics: Iterable[wire.TopicPartition]) -> OwnedPartitions:
    return frozenset(TopicPartition(topic.topic, index) for topic in topics for index in topic.partitions)
