"""Log end offsets of all replicas of a partition, as known to its leader.

Every Kafka broker answers DescribeQuorum for the metadata log; SSKafka brokers also answer it for partitions that they
lead.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import raise_for
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)


class ReplicaPositions(NamedTuple):
    topic_id: Uuid
    leader: int
    leader_epoch: int
    high_watermark: int
    log_end_offsets: Mapping[int, int]
    """By replica id, including the leader; -1 for a replica that has not fetched from this leader yet."""

    @property
    def log_end_offset(self) -> int:
        """Log end offset of the leader."""
        return self.log_end_offsets[self.leader]


async def replica_positions(cluster: Cluster, partition: TopicPartition) -> ReplicaPositions:
    """Describe the replicas of `partition` with a single attempt; transient errors are `retriable`."""
    leader = (await cluster.leader_of(partition)).leader
    connection = await cluster.connection_to(leader)
    request = DescribeQuorumRequest([RequestTopicData(partition.topic, [RequestPartitionData(partition.partition)])])
    response = await connection.request(request, DescribeQuorumResponse)
    raise_for(response.error_code, response.error_message)
    described = response.topics[0].partitions[0]
    raise_for(described.error_code, f"replicas of {partition}")
    return ReplicaPositions(
        topic_id=cluster.view.topics[partition.topic].topic_id,
        leader=described.leader_id,
        leader_epoch=described.leader_epoch,
        high_watermark=described.high_watermark,
        log_end_offsets={replica.replica_id: replica.log_end_offset for replica in described.current_voters},
    )
