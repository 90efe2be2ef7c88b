"""Descriptions of consumer groups for ConsumerGroupDescribe, made in steps from a snapshot of each group.

A group may have thousands of members and topics. Members are encoded one by one, so that only their bytes are kept.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

from sskafka.groups.assignors import Partitions
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.encoded_partitions import encode_named_topics, encode_names, encoded_names_of
from sskafka.groups.group import Group
from sskafka.groups.members import ConsumerMember
from sskafka.model.computation import Computation
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import Uuid
from sskafka.wire.codec import encode_element
from sskafka.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
TOPICS_PER_STEP = 4_000


class GroupSnapshot(NamedTuple):
    """What a description says of a group. Nothing in it ever changes."""

    group_id: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[ConsumerMember, ...]
    target: Mapping[str, Partitions]


def snapshot_of(group_id: str, group: Group | None, default_assignor: str) -> GroupSnapshot | DescribedGroup:
    """Return the snapshot of a consumer group, or the description of anything else."""
    if not isinstance(group, ConsumerGroup):
        text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id)
    members = tuple(group.members.values())
    return GroupSnapshot(
        group_id,
        group.state_name,
        group.epoch,
        group.target_epoch,
        group.preferred_assignor(members, default_assignor),
        members,
        group.target.copy(),
    )


class Describer:
    """Describes groups with the topics that exist at the beginning of a request."""

    def __init__(self, topics: Topics, version: int) -> None:
        self._topics = topics
        self._version = version
        self._names: dict[Uuid, str] | None = None
        self._encoded_names: dict[Uuid, bytes] = {}
        self.size_bytes = 0
        """Encoded size of all members that were described."""

    def topics_of(self, snapshot: GroupSnapshot) -> Computation[set[str]]:
        """Return the topics that the description of the group names."""
        names = yield from self._names_by_id()
        named: set[str] = set()
        for member in snapshot.members:
            named |= member.topic_names
            for partitions in (member.assigned, member.pending_revocation, snapshot.target.get(member.member_id)):
                if partitions:
                    named.update(names[topic_id] for topic_id in partitions.topic_ids() if topic_id in names)
            yield
        return named

    def describe(self, snapshot: GroupSnapshot) -> Computation[DescribedGroup]:
        names = yield from self._names_by_id()
        if not self._encoded_names:
            self._encoded_names = yield from encoded_names_of(names)
        members: list[Member] = []
        for member in snapshot.members:
            described = yield from self._member(member, snapshot.target.get(member.member_id))
            encoded = encode_element(described, self._version, flexible=True)
            self.size_bytes += len(encoded)
            members.append(cast(Member, encoded))  # the encoder takes elements that are encoded
            yield
        return DescribedGroup(
            group_id=snapshot.group_id,
            group_state=snapshot.state,
            group_epoch=snapshot.epoch,
            assignment_epoch=snapshot.target_epoch,
            assignor_name=snapshot.assignor,
            members=members,
        )

    def _member(self, member: ConsumerMember, target: Partitions | None) -> Computation[Member]:
        return Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client.client_id,
            client_host=member.client.host,
            subscribed_topic_names=(yield from encode_names(sorted(member.topic_names))),
            subscribed_topic_regex=member.topic_regex,
            assignment=(yield from self._assignment(member.owned)),
            target_assignment=(yield from self._assignment(target)),
            member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
        )

    def _assignment(self, partitions: Partitions | None) -> Computation[Assignment]:
        if not partitions:
            return Assignment()
        return Assignment((yield from encode_named_topics(partitions, self._encoded_names)))

    def _names_by_id(self) -> Computation[dict[Uuid, str]]:
        if self._names is None:
            self._names = yield from _names_by_id(self._topics)
        return self._names


def _names_by_id(topics: Topics) -> Computation[dict[Uuid, str]]:
    found: dict[Uuid, str] = {}
    for number, (name, topic) in enumerate(topics.items(), 1):
        found[topic.topic_id] = name
        if not number % TOPICS_PER_STEP:
            yield
    return found
