"""The replicas of a topic: how far each has copied the leader's log, how large it is, and in which directory.

Only SSKafka brokers report how far the replicas of a data partition are.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import NamedTuple, TypeVar

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, raise_for
from sskafka.client.metadata import NO_LEADER, TopicView
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)

T = TypeVar("T")

ANSWER_TIMEOUT_S = 3.0

ReplicaKey = tuple[int, int]
"""Partition and broker."""


class Placed(NamedTuple):
    """A copy of a partition on a disk."""

    directory: str
    log_bytes: int
    is_moving: bool
    """Whether it is a copy that a move between directories has not completed."""


class TopicReplica(NamedTuple):
    partition: int
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    log_end_offset: int | None
    """None if the leader does not know it, or does not answer."""
    lag: int | None
    """Records of the leader that the replica has not copied."""
    copies: tuple[Placed, ...]
    """Empty if the broker did not answer."""


async def topic_replicas(cluster: Cluster, topic: TopicView) -> list[TopicReplica]:
    """Return all replicas, by partition, in the order of preference. Sizes and directories on brokers that are down are
    unknown."""
    leaders = {one.leader for one in topic.partitions.values()} - {NO_LEADER}
    brokers = {broker for one in topic.partitions.values() for broker in one.replicas}
    ends_of = [_answered(_log_end_offsets(cluster, leader, topic)) for leader in sorted(leaders)]
    copies_of = [_answered(_copies(cluster, broker, topic)) for broker in sorted(brokers)]
    ends = _merged(await asyncio.gather(*ends_of))
    copies = _merged(await asyncio.gather(*copies_of))
    replicas = []
    for number, partition in sorted(topic.partitions.items()):
        leader_end = ends.get((number, partition.leader))
        for broker in partition.replicas:
            end = ends.get((number, broker))
            replicas.append(
                TopicReplica(
                    number,
                    broker,
                    broker == partition.leader,
                    broker in partition.isr,
                    end,
                    None if end is None or leader_end is None else max(0, leader_end - end),
                    tuple(copies.get((number, broker), ())),
                )
            )
    return replicas


async def _answered(question: Awaitable[dict[ReplicaKey, T]]) -> dict[ReplicaKey, T]:
    """Return the answer, empty if the broker does not answer in time."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await question
    except (ClientError, KafkaError, TimeoutError):
        return {}


def _merged(answers: Iterable[dict[ReplicaKey, T]]) -> dict[ReplicaKey, T]:
    return {key: found for answer in answers for key, found in answer.items()}


async def _log_end_offsets(cluster: Cluster, leader: int, topic: TopicView) -> dict[ReplicaKey, int]:
    led = [RequestPartitionData(number) for number, one in topic.partitions.items() if one.leader == leader]
    connection = await cluster.connection_to(leader)
    request = DescribeQuorumRequest([RequestTopicData(topic.name, led)])
    response = await connection.request(request, DescribeQuorumResponse)
    raise_for(response.error_code, response.error_message)
    return {
        (partition.partition_index, replica.replica_id): replica.log_end_offset
        for described in response.topics
        for partition in described.partitions
        if partition.error_code == ErrorCode.NONE
        for replica in partition.current_voters
        if replica.log_end_offset >= 0
    }


async def _copies(cluster: Cluster, broker: int, topic: TopicView) -> dict[ReplicaKey, list[Placed]]:
    placed = [number for number, one in topic.partitions.items() if broker in one.replicas]
    connection = await cluster.connection_to(broker)
    request = DescribeLogDirsRequest([DescribableLogDirTopic(topic.name, placed)])
    response = await connection.request(request, DescribeLogDirsResponse)
    raise_for(response.error_code, f"log directories of broker {broker}")
    found: dict[ReplicaKey, list[Placed]] = {}
    for directory in response.results:
        for described in directory.topics:
            for one in described.partitions:
                copy = Placed(directory.log_dir, one.partition_size, one.is_future_key)
                found.setdefault((one.partition_index, broker), []).append(copy)
    return found
