"""The consumers of a topic: groups that have committed offsets of it, and clients that fetch from it."""

import asyncio
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.groups import ListedGroup, committed_offsets, list_groups
from sskafka.client.metadata import NO_LEADER, TopicView
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition

GROUPS_MAX = 500
"""Groups that are asked for their offsets."""
_AT_ONCE = 8


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
