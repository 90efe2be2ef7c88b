"""Administration of groups: list, describe, read and change committed offsets, delete.

Works with every Kafka broker, except the group timeline and the readers' fetch positions, which only SSKafka has.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from struct import Struct
from typing import NamedTuple, TypeVar

from sskafka.client.cluster import Cluster
from sskafka.client.connection import BrokerConnection
from sskafka.client.coordinators import CoordinatorType, coordinator_of
from sskafka.client.errors import UnknownGroupError, UnsupportedApiError, broker_error, raise_for
from sskafka.client.offsets import by_topic
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.wire.codec import decode
from sskafka.wire.messages import consumer_group_describe as consumer_wire
from sskafka.wire.messages import describe_groups as classic_wire
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from sskafka.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from sskafka.wire.messages.describe_group_timeline import (
    DescribeGroupTimelineRequest,
    DescribeGroupTimelineResponse,
    TimelineEvent,
)
from sskafka.wire.messages.describe_readers import DescribeReadersRequest, DescribeReadersResponse, ReaderPosition
from sskafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from sskafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse

T = TypeVar("T")

_INT16 = Struct(">h")
_NAMES_UNTIL = 7  # newest OffsetFetch version that has a single group and topic names
_STABLE_FROM = 7
_COMMIT_BY_NAME_UNTIL = 9
NO_OFFSET = -1


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    kind: str
    """`classic` or `consumer`."""
    coordinator: int


class GroupMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    group_id: str
    kind: str
    state: str
    assignor: str
    coordinator: int
    generation: int | None
    """The group epoch; None for classic groups, whose generation is not in the response."""
    members: tuple[GroupMember, ...]

    def owner_of(self, partition: TopicPartition) -> GroupMember | None:
        return next((member for member in self.members if partition in member.partitions), None)


class Committed(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str


async def list_groups(cluster: Cluster) -> list[ListedGroup]:
    """List the groups of all brokers, sorted by group id."""
    found: dict[str, ListedGroup] = {}
    for broker in await cluster.brokers():
        connection = await cluster.connection_to(broker.node_id)
        response = await connection.request(ListGroupsRequest(), ListGroupsResponse)
        raise_for(response.error_code, f"groups of broker {broker.node_id}")
        for group in response.groups:
            kind = group.group_type or "classic"
            found[group.group_id] = ListedGroup(
                group.group_id, group.protocol_type, group.group_state, kind, broker.node_id
            )
    return sorted(found.values())


async def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """Describe a group; raise KafkaError GROUP_ID_NOT_FOUND if it does not exist."""

    async def attempt(connection: BrokerConnection, coordinator: int) -> GroupDescription:
        try:
            described = await _describe_consumer(connection, group_id, coordinator)
        except UnsupportedApiError:
            described = None
        return described or await _describe_classic(connection, group_id, coordinator)

    return await _at_coordinator(cluster, group_id, attempt)


async def _describe_consumer(connection: BrokerConnection, group_id: str, coordinator: int) -> GroupDescription | None:
    request = consumer_wire.ConsumerGroupDescribeRequest([group_id])
    response = await connection.request(request, consumer_wire.ConsumerGroupDescribeResponse)
    group = response.groups[0]
    if group.error_code in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
        return None
    raise_for(group.error_code, group.error_message or group_id)
    members = tuple(
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(
                TopicPartition(topic.topic_name, index)
                for topic in member.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for member in group.members
    )
    return GroupDescription(
        group_id, "consumer", group.group_state, group.assignor_name, coordinator, group.group_epoch, members
    )


async def _describe_classic(connection: BrokerConnection, group_id: str, coordinator: int) -> GroupDescription:
    request = classic_wire.DescribeGroupsRequest([group_id])
    response = await connection.request(request, classic_wire.DescribeGroupsResponse)
    group = response.groups[0]
    if group.group_state == "Dead" or group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise UnknownGroupError(group_id)
    raise_for(group.error_code, group_id)
    members = tuple(
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _assigned(member.member_assignment) if group.protocol_type == "consumer" else (),
        )
        for member in group.members
    )
    return GroupDescription(group_id, "classic", group.group_state, group.protocol_data, coordinator, None, members)


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    if len(assignment) < _INT16.size:
        return ()
    version = min(int(_INT16.unpack_from(assignment)[0]), ConsumerProtocolAssignment.SCHEMA.versions.last)
    decoded = decode(ConsumerProtocolAssignment, version, assignment, _INT16.size, allow_trailing=True)
    return tuple(TopicPartition(item.topic, index) for item in decoded.assigned_partitions for index in item.partitions)


async def committed_offsets(
    cluster: Cluster, group_id: str, partitions: Sequence[TopicPartition] | None = None, *, require_stable: bool = False
) -> dict[TopicPartition, Committed]:
    """Return the committed offsets of the group, of these partitions only if they are given.

    With `require_stable`, wait while a transaction may still change them."""
    topics = None
    if partitions is not None:
        names = by_topic(partitions).items()
        topics = [OffsetFetchRequestTopic(name, [one.partition for one in of_topic]) for name, of_topic in names]

    async def attempt(connection: BrokerConnection, _: int) -> dict[TopicPartition, Committed]:
        version = connection.version_for(OffsetFetchRequest, at_most=_NAMES_UNTIL)
        stable = require_stable and version >= _STABLE_FROM
        request = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=stable)
        response = await connection.request(request, OffsetFetchResponse, version=version)
        raise_for(response.error_code, f"offsets of group {group_id!r}")
        return _committed(response)

    return await _at_coordinator(cluster, group_id, attempt)


def _committed(response: OffsetFetchResponse) -> dict[TopicPartition, Committed]:
    found = {}
    for topic in response.topics:
        for partition in topic.partitions:
            raise_for(partition.error_code, f"offset of {topic.name}-{partition.partition_index}")
            if partition.committed_offset != NO_OFFSET:
                found[TopicPartition(topic.name, partition.partition_index)] = Committed(
                    partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
                )
    return found


async def commit_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets as an administrator; the group must have no members."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, index), offset in offsets.items():
        part = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic))
        part.partitions.append(OffsetCommitRequestPartition(index, offset, committed_metadata=""))

    async def attempt(connection: BrokerConnection, _: int) -> None:
        version = connection.version_for(OffsetCommitRequest, at_most=_COMMIT_BY_NAME_UNTIL)
        request = OffsetCommitRequest(group_id=group_id, topics=list(topics.values()))
        response = await connection.request(request, OffsetCommitResponse, version=version)
        for answered in response.topics:
            for partition in answered.partitions:
                raise_for(partition.error_code, f"offset of {answered.name}-{partition.partition_index}")

    await _at_coordinator(cluster, group_id, attempt)


async def delete_group(cluster: Cluster, group_id: str) -> None:
    async def attempt(connection: BrokerConnection, _: int) -> None:
        response = await connection.request(DeleteGroupsRequest([group_id]), DeleteGroupsResponse)
        code = response.results[0].error_code
        if code == ErrorCode.NON_EMPTY_GROUP:
            raise broker_error(code, f"group {group_id!r} has members")
        raise_for(code, f"group {group_id!r}")

    await _at_coordinator(cluster, group_id, attempt)


async def group_timeline(cluster: Cluster, group_id: str) -> list[TimelineEvent]:
    async def attempt(connection: BrokerConnection, _: int) -> list[TimelineEvent]:
        request = DescribeGroupTimelineRequest(group_id)
        response = await connection.request(request, DescribeGroupTimelineResponse)
        if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise UnknownGroupError(group_id)
        raise_for(response.error_code, f"group {group_id!r}")
        return list(response.events)

    return await _at_coordinator(cluster, group_id, attempt)


async def fetched_positions(cluster: Cluster, topics: Iterable[str] | None = None) -> list[ReaderPosition]:
    """Return the last fetch position of each client and partition, over all brokers.

    If a client reads a partition from several brokers, the most recent fetch counts."""
    newest: dict[tuple[str, str, int], ReaderPosition] = {}
    wanted = None if topics is None else list(topics)
    for broker in await cluster.brokers():
        connection = await cluster.connection_to(broker.node_id)
        response = await connection.request(DescribeReadersRequest(wanted), DescribeReadersResponse)
        raise_for(response.error_code, f"readers of broker {broker.node_id}")
        for reader in response.readers:
            key = (reader.client_id, reader.topic, reader.partition)
            known = newest.get(key)
            if known is None or reader.age_ms < known.age_ms:
                newest[key] = reader
    return [newest[key] for key in sorted(newest)]


async def _at_coordinator(
    cluster: Cluster, group_id: str, attempt: Callable[[BrokerConnection, int], Awaitable[T]]
) -> T:
    """Run `attempt` at the group's coordinator; retry while the coordinator is loading or has moved."""

    async def once() -> T:
        coordinator = await coordinator_of(cluster, CoordinatorType.GROUP, group_id)
        return await attempt(await cluster.connection_to(coordinator), coordinator)

    return await cluster.retrying(once)
