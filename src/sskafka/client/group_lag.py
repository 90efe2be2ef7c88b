"""The lag of a group, in records and in time, and the groups that read a topic.

The lag in time is the age of the first record that the group has not read, 0 if it has read all records.
"""

import asyncio
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.groups import Committed, ListedGroup, committed_offsets, list_groups
from sskafka.client.metadata import NO_LEADER, TopicView
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition

_READ_TIMEOUT_MS = 3_000
GROUPS_MAX = 500
"""Groups that are asked for their offsets."""
_AT_ONCE = 8


class PartitionLag(NamedTuple):
    partition: TopicPartition
    committed: int | None
    log_start: int
    log_end: int
    lag_ms: int | None
    """None if it could not be determined."""

    @property
    def lag(self) -> int | None:
        return None if self.committed is None else max(0, self.log_end - max(self.committed, self.log_start))


async def lag_of(
    cluster: Cluster, committed: dict[TopicPartition, Committed], partitions: set[TopicPartition]
) -> list[PartitionLag]:
    """Return the lag of the partitions that the group has committed or owns."""
    every = sorted({*committed, *partitions})
    starts = await list_offsets(cluster, dict.fromkeys(every, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(every, LATEST))
    found = [
        PartitionLag(
            partition,
            committed[partition].offset if partition in committed else None,
            starts[partition].offset,
            ends[partition].offset,
            0,
        )
        for partition in every
    ]
    ages = await _ages(cluster, found)
    return [lag._replace(lag_ms=ages.get(lag.partition) if lag.lag else 0) for lag in found]


async def _ages(cluster: Cluster, lags: list[PartitionLag]) -> dict[TopicPartition, int]:
    """Return the age of the first unread record of each partition that has one."""
    behind = {lag.partition: max(lag.committed or 0, lag.log_start) for lag in lags if lag.lag}
    ages: dict[TopicPartition, int] = {}
    deadline_ms = cluster.deadline_ms(_READ_TIMEOUT_MS)
    async with ConsumerEngine(cluster, ConsumerConfig(max_partition_fetch_bytes=1)) as consumer:
        consumer.assign(behind)
        while behind.keys() - ages.keys() and cluster.clock.monotonic_ms() < deadline_ms:
            for record in await consumer.poll(500):
                partition = TopicPartition(record.topic, record.partition)
                if partition not in ages:
                    ages[partition] = max(0, cluster.clock.now_ms() - record.timestamp)
                    consumer.unassign(partition)
    return ages


class TopicGroup(NamedTuple):
    group: ListedGroup
    partitions: int
    """Partitions of the topic that the group has committed offsets of."""
    lag: int
    """Records of those partitions that the group has not read."""


async def groups_of_topic(cluster: Cluster, topic: TopicView) -> tuple[list[TopicGroup], bool]:
    """Return the groups that have committed offsets of the topic, and whether all groups could be asked."""
    partitions = [TopicPartition(topic.name, number) for number in sorted(topic.partitions)]
    led = [at for at in partitions if topic.partitions[at.partition].leader != NO_LEADER]
    ends = {at: found.offset for at, found in (await list_offsets(cluster, dict.fromkeys(led, LATEST))).items()}
    groups = await list_groups(cluster)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(group: ListedGroup) -> TopicGroup | None:
        async with turns:
            try:
                committed = await committed_offsets(cluster, group.group_id, partitions)
            except KafkaError:
                return None  # deleted in the meantime, or hidden from this client
        lag = sum(max(0, ends[at] - one.offset) for at, one in committed.items() if at in ends)
        return TopicGroup(group, len(committed), lag) if committed else None

    found = await asyncio.gather(*(ask(group) for group in groups[:GROUPS_MAX]))
    return [one for one in found if one is not None], len(groups) <= GROUPS_MAX
