"""Describe the metadata quorum: its leader, and the log end offset of each voter and observer."""

from collections.abc import Sequence
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ProtocolError, raise_for
from sskafka.model.ids import METADATA_TOPIC
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)

_REQUEST = DescribeQuorumRequest(topics=[RequestTopicData(METADATA_TOPIC, [RequestPartitionData(0)])])


class QuorumMember(NamedTuple):
    node_id: int
    log_end_offset: int
    last_fetch_timestamp: int
    """Milliseconds since the epoch; -1 if unknown."""
    last_caught_up_timestamp: int


class QuorumDescription(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumMember, ...]
    observers: tuple[QuorumMember, ...]

    def lag(self, member: QuorumMember) -> int:
        """Return how many records the member is behind the leader."""
        ends = [voter.log_end_offset for voter in self.voters if voter.node_id == self.leader_id]
        return max(0, *ends, self.high_watermark) - member.log_end_offset


async def describe_quorum(cluster: Cluster) -> QuorumDescription:
    async def attempt() -> QuorumDescription:
        connection = await cluster.any_connection()
        response = await connection.request(_REQUEST, DescribeQuorumResponse)
        raise_for(response.error_code, response.error_message)
        return _description(response)

    return await cluster.retrying(attempt)


def _description(response: DescribeQuorumResponse) -> QuorumDescription:
    for topic in response.topics:
        for partition in topic.partitions:
            raise_for(partition.error_code, partition.error_message)
            return _partition_description(partition)
    raise ProtocolError("the DescribeQuorum response contains no partition")


def _partition_description(partition: ResponsePartitionData) -> QuorumDescription:
    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        _members(partition.current_voters),
        _members(partition.observers),
    )


def _members(states: Sequence[ReplicaState]) -> tuple[QuorumMember, ...]:
    members = (
        QuorumMember(state.replica_id, state.log_end_offset, state.last_fetch_timestamp, state.last_caught_up_timestamp)
        for state in states
    )
    return tuple(sorted(members))
