"""How far a query has come, committed to a consumer group: every tool that shows lag shows the query's.

Spark's checkpoint stays the truth. Nobody joins the group; the offsets are stored as those of a consumer that was
assigned its partitions by hand. When that fails the query goes on: only the lag is stale.
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
    """Tells whether the group has the offsets now."""
    try:
        deadline_ms = cluster.deadline_ms(timeout_ms)
        await cluster.retrying(lambda: commit_offsets(cluster, group_id, offsets), deadline_ms=deadline_ms)
    except (ClientError, KafkaError) as error:
        logger.warning("progress was not committed to group %s, its lag is stale: %s", group_id, error)
        return False
    return True


async def committed_progress(cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]) -> Offsets:
    """What the group has committed of `partitions`; those without an offset are left out."""
    committed = await cluster.retrying(lambda: committed_offsets(cluster, group_id))
    return {partition: committed[partition].offset for partition in partitions if partition in committed}
