"""ListOffsets: the first and last offset of a partition, and the first record at or after a timestamp."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import is_retriable, raise_for
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

# Special timestamps of ListOffsets.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3

NO_OFFSET = -1
_CONSUMER = -1


class FoundOffset(NamedTuple):
    """`offset` is -1 if no record has this timestamp or a later one."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation: int = 0,
    deadline_ms: float | None = None,
) -> dict[TopicPartition, FoundOffset]:
    """Return, for each partition, the offset at its timestamp, which may be EARLIEST, LATEST or MAX_TIMESTAMP.

    All leaders are asked at the same time."""
    found: dict[TopicPartition, FoundOffset] = {}

    async def list_missing() -> None:
        missing = [partition for partition in timestamps if partition not in found]
        requests = [
            _list_at_leader(cluster, leader, {one: timestamps[one] for one in partitions}, isolation, found)
            for leader, partitions in (await cluster.by_leader(missing)).items()
        ]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for failure in sorted(failures, key=_may_pass):  # errors that a retry cannot resolve come first
            raise failure

    topics = {partition.topic for partition in timestamps}
    await cluster.retrying(list_missing, topics=topics, deadline_ms=deadline_ms)
    return found


def _may_pass(failure: BaseException) -> bool:
    return isinstance(failure, Exception) and is_retriable(failure)


async def _list_at_leader(
    cluster: Cluster,
    leader: int,
    timestamps: Mapping[TopicPartition, int],
    isolation: int,
    found: dict[TopicPartition, FoundOffset],
) -> None:
    """Add the offsets that `leader` returns to `found`, then raise the first error in its response, if any."""
    connection = await cluster.connection_to(leader)
    version = connection.version_for(ListOffsetsRequest)
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=isolation if version >= 2 else 0,
        topics=_topics(cluster, timestamps),
        timeout_ms=cluster.config.request_timeout_ms,
    )
    response = await connection.request(request, ListOffsetsResponse, version=version)
    errors = []
    for topic in response.topics:
        for answer in topic.partitions:
            if answer.error_code:
                errors.append((answer.error_code, f"{topic.name}-{answer.partition_index}"))
            else:
                partition = TopicPartition(topic.name, answer.partition_index)
                found[partition] = FoundOffset(answer.offset, answer.timestamp, answer.leader_epoch)
    for code, partition_name in errors:
        raise_for(code, f"offsets of {partition_name}")


def _topics(cluster: Cluster, timestamps: Mapping[TopicPartition, int]) -> list[ListOffsetsTopic]:
    return [
        ListOffsetsTopic(
            name=name,
            partitions=[
                ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=leader_epoch_of(cluster, partition),
                    timestamp=timestamps[partition],
                )
                for partition in partitions
            ],
        )
        for name, partitions in by_topic(timestamps).items()
    ]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition)
    return topics


def leader_epoch_of(cluster: Cluster, partition: TopicPartition) -> int:
    view = cluster.view.partition(partition)
    return -1 if view is None else view.leader_epoch
