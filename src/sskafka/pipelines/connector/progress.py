"""Progress of a query as offsets of a consumer group, so that every tool that shows lag shows that of the query.

Spark's checkpoint remains authoritative. The group has no members; the offsets are committed as by a consumer with
manually assigned partitions. If a commit fails, the query continues, and only the lag is out of date.
"""

import logging
from collections.abc import Iterable

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError
from sskafka.client.groups import commit_offsets, committed_offsets
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.offsets import Offsets

logger = logging.getLogger(__name__)


async def maybe_commit_progress(cluster: Cluster, group_id: str, offsets: Offsets, timeout_ms: int = 2_000) -> bool:
    """Commit offsets to the group, and return whether it succeeded."""
    try:
        deadline_ms = cluster.deadline_ms(timeout_ms)
        await cluster.retrying(lambda: commit_offsets(cluster, group_id, offsets), deadline_ms=deadline_ms)
    except (ClientError, KafkaError) as error:
        logger.warning("progress was not committed to group %s, so its lag is out of date: %s", group_id, error)
        return False
    return True


async def committed_progress(cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]) -> Offsets:
    """Return the offsets that the group has committed for `partitions`."""
    committed = await cluster.retrying(lambda: committed_offsets(cluster, group_id))
    return {partition: committed[partition].offset for partition in partitions if partition in committed}
