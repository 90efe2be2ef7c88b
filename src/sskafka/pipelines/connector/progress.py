"""How far a query has come, committed to a consumer group: every tool that shows lag shows the query's.

Spark's checkpoint stays the truth. Nobody joins the group; the offsets are stored as those of a consumer that was
assigned its partitions by hand. When that fails the query goes on: only the lag is stale.
"""

import logging
from collections.abc import Iterable

from sskafka.client.cluster import Cluster
from sskafka.client.connection import Connection
from sskafka.client.errors import ClientError, raise_for
from sskafka.client.offsets import by_topic
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.coordinators import CoordinatorType, coordinator_connection
from sskafka.pipelines.connector.offsets import Offsets
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from sskafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse

_NAMES_UNTIL = 9  # later versions name topics by id
_ONE_GROUP_UNTIL = 7  # later versions ask for several groups at once

logger = logging.getLogger(__name__)


async def maybe_commit_progress(cluster: Cluster, group_id: str, offsets: Offsets, timeout_ms: int = 2_000) -> bool:
    """Tells whether the group has the offsets now."""
    try:
        await cluster.retrying(lambda: _commit(cluster, group_id, offsets), deadline_ms=cluster.deadline_ms(timeout_ms))
    except (ClientError, KafkaError) as error:
        logger.warning("progress was not committed to group %s, its lag is stale: %s", group_id, error)
        return False
    return True


async def _commit(cluster: Cluster, group_id: str, offsets: Offsets) -> None:
    connection: Connection = await coordinator_connection(cluster, CoordinatorType.GROUP, group_id)
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=one.partition, committed_offset=offsets[one])
                    for one in partitions
                ],
            )
            for name, partitions in by_topic(offsets).items()
        ],
    )
    version = connection.version_for(OffsetCommitRequest, at_most=_NAMES_UNTIL)
    response = await connection.request(request, OffsetCommitResponse, version=version)
    for topic in response.topics:
        for answer in topic.partitions:
            raise_for(answer.error_code, f"group {group_id}: offset of {topic.name}-{answer.partition_index}")


async def committed_progress(cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]) -> Offsets:
    """What the group has committed of `partitions`; those without an offset are left out."""
    asked = list(partitions)

    async def attempt() -> Offsets:
        connection = await coordinator_connection(cluster, CoordinatorType.GROUP, group_id)
        topics = [
            OffsetFetchRequestTopic(name=name, partition_indexes=[one.partition for one in of_topic])
            for name, of_topic in by_topic(asked).items()
        ]
        version = connection.version_for(OffsetFetchRequest, at_most=_ONE_GROUP_UNTIL)
        request = OffsetFetchRequest(group_id=group_id, topics=topics)
        response = await connection.request(request, OffsetFetchResponse, version=version)
        raise_for(response.error_code, f"offsets of group {group_id}")
        return {
            TopicPartition(topic.name, answer.partition_index): answer.committed_offset
            for topic in response.topics
            for answer in topic.partitions
            if answer.committed_offset >= 0
        }

    return await cluster.retrying(attempt)
