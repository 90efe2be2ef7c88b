"""The computation of a target assignment, on a snapshot of the group, and the records of its result.

    snapshot of the group in epoch E ──► compute, in steps ──► NewTarget of epoch E ──► records for the group as it is

A small group is assigned in the turn of the heartbeat that finds the target too old: nothing happens in between. The
target of a large group is computed in many turns (`ComputeTarget` asks for it), and its members get their current
assignments in the meantime. This can have happened when the result is there:

    a member joined, changed its            the group has a newer epoch. The result becomes the target of epoch E, and
    subscription or left, or topics         the next one is computed. Otherwise a group whose members come and go all
    were created, deleted or extended       the time would never get a target.
      … the member left or was fenced       its share has no member until the next target
      … the member is new                   it has no share until the next target
      … it subscribes to other topics       reconciliation leaves out topics that it does not subscribe to
      … the topic was deleted               reconciliation leaves it out
    a static member came back under a new   no new epoch, and the share is the one of the new id: as if it had come back
    member id                               after the assignment
    the group has a target of epoch E or    the result is dropped. The group became small, and was assigned at once
    newer
    the group was deleted, and perhaps      the result is dropped: it is not the same group object, even if its epoch is
    created again; it became a classic      the same by chance
    group, and perhaps a consumer group
    again; its shard was loaded anew
    the broker no longer coordinates the    the write is refused. The next coordinator computes the target when it gets
    group, or stops                         a heartbeat
    too few replicas are in sync            the write is refused. A heartbeat asks again

This is what Apache Kafka does with offloaded assignors (KIP-1263). Nothing is kept of a computation that is under way
but the computation itself: every heartbeat that finds the target too old asks for it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sskafka.groups import consumer_records as records
from sskafka.groups.assignors import ASSIGNORS, NOTHING, Partitions, Subscriber
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.encoded_partitions import encode_topics
from sskafka.groups.log_records import GroupRecord
from sskafka.groups.members import ConsumerMember
from sskafka.groups.subscribers import STEP_ITEMS
from sskafka.model.computation import Computation
from sskafka.model.ids import Uuid
from sskafka.wire.messages import group_records as wire

AT_ONCE_MAX = 1_500
"""Topics of members, about, that are assigned in the turn of a heartbeat. That takes up to 3 ms."""


class ComputeTarget(NamedTuple):
    """An effect: compute the target assignment of a group in the background."""

    group_id: str


class Snapshot(NamedTuple):
    """All that an assignment depends on. Nothing in it ever changes, except the group, which is not looked into."""

    group: ConsumerGroup
    epoch: int
    assignor: str
    topics: Topics
    members: tuple[ConsumerMember, ...]
    regex_topics: Mapping[str, frozenset[str]]
    target: Mapping[str, Partitions]


class Share(NamedTuple):
    """The partitions of a member in a new target."""

    instance_id: str | None
    partitions: Partitions
    value: wire.ConsumerGroupTargetAssignmentMemberValue | None
    """The value of the record, encoded; None if it was the member's target before."""


class NewTarget(NamedTuple):
    group: ConsumerGroup
    epoch: int
    shares: Mapping[str, Share]
    """By member id."""

    def is_for(self, group: object) -> bool:
        """Return whether the group still needs this target."""
        return group is self.group and self.group.target_epoch < self.epoch

    def records(self, now_ms: int) -> Iterator[GroupRecord]:
        """Yield the records that make this the target of the group, for the members that it has by now."""
        group = self.group
        for member_id, share in self.shares.items():
            owner = member_id if member_id in group.members else group.static_members.get(share.instance_id or "")
            if owner is not None and group.target.get(owner) != share.partitions:
                yield records.target_record(group.group_id, owner, share.partitions, share.value)
        yield records.target_epoch_record(group.group_id, self.epoch, now_ms)


def is_large(group: ConsumerGroup, topics: Topics) -> bool:
    """Return whether the assignment of the group takes longer than a turn of the event loop should."""
    subscribed, members = group.subscribed_topics, len(group.members)
    if len(subscribed) + members > AT_ONCE_MAX:
        return True
    partitions = sum(topics[name].partition_count for name in subscribed if name in topics)
    if partitions <= AT_ONCE_MAX:
        return False
    if len({member.subscription for member in group.members.values()}) > 1:
        return True  # such members are assigned partition by partition
    blocks = len(subscribed) + partitions // 256  # about as long as masks of 256 bits take
    return min(partitions, blocks * members) > AT_ONCE_MAX


def snapshot_of(group: ConsumerGroup, assignor: str, topics: Topics) -> Snapshot:
    members = tuple(group.members.values())
    return Snapshot(group, group.epoch, assignor, topics, members, group.regex_topics.copy(), group.target.copy())


def compute(snapshot: Snapshot) -> Computation[NewTarget]:
    subscribers, counts = yield from _inputs(snapshot)
    made = yield from ASSIGNORS[snapshot.assignor](subscribers, counts)
    shares: dict[str, Share] = {}
    done = 0
    for member in snapshot.members:
        partitions, value = made[member.member_id], None
        if snapshot.target.get(member.member_id) != partitions:
            value = yield from _encoded(partitions)
        shares[member.member_id] = Share(member.instance_id, partitions, value)
        done += partitions.block_count + 1
        if done > STEP_ITEMS:
            done = 0
            yield
    return NewTarget(snapshot.group, snapshot.epoch, shares)


def _encoded(partitions: Partitions) -> Computation[wire.ConsumerGroupTargetAssignmentMemberValue]:
    return wire.ConsumerGroupTargetAssignmentMemberValue((yield from encode_topics(partitions, wire.TopicPartition)))


def _inputs(snapshot: Snapshot) -> Computation[tuple[list[Subscriber], dict[Uuid, int]]]:
    """Return what assignors get: the members, and the partition counts of all topics that they subscribe to."""
    counts: dict[Uuid, int] = {}
    known: dict[tuple[frozenset[str], str], frozenset[Uuid]] = {}
    subscribers: list[Subscriber] = []
    for number, member in enumerate(snapshot.members, 1):
        topics = known.get(member.subscription)
        if topics is None:
            names = member.topic_names | snapshot.regex_topics.get(member.topic_regex, frozenset())
            topics = known[member.subscription] = yield from _counted(names, snapshot.topics, counts)
        before = snapshot.target.get(member.member_id, NOTHING)
        subscribers.append(Subscriber(member.member_id, member.name, topics, before))
        if not number % STEP_ITEMS:
            yield
    return subscribers, counts


def _counted(names: frozenset[str], topics: Topics, counts: dict[Uuid, int]) -> Computation[frozenset[Uuid]]:
    """Return the ids of the topics, and add their partition counts."""
    found: set[Uuid] = set()
    for number, name in enumerate(names, 1):
        topic = topics.get(name)
        if topic is not None:
            found.add(topic.topic_id)
            counts[topic.topic_id] = topic.partition_count
        if not number % STEP_ITEMS:
            yield
    return frozenset(found)
