"""DescribeQuorum of a data partition: the positions of its replicas, as known to its leader.

Kafka answers DescribeQuorum for the metadata log only. Requests for that log are forwarded to the controller.
"""

from typing import Any

from sskafka.model.error_texts import error_text
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import METADATA_TOPIC
from sskafka.replication.partition import Partition
from sskafka.replication.readable_partition import UNKNOWN_EPOCH
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.registry import MessageHandler
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)


class ReplicaPositionsHandler:
    """`of_metadata` handles requests for the metadata log."""

    def __init__(self, replicas: ReplicaManager, of_metadata: MessageHandler[DescribeQuorumRequest]) -> None:
        self._replicas = replicas
        self._of_metadata = of_metadata

    async def describe_quorum(self, message: DescribeQuorumRequest, request: Request) -> Any:
        if not message.topics or any(topic.topic_name == METADATA_TOPIC for topic in message.topics):
            return await self._of_metadata(message, request)
        topics = [
            ResponseTopicData(
                topic.topic_name, [self._partition(topic.topic_name, item.partition_index) for item in topic.partitions]
            )
            for topic in message.topics
        ]
        return DescribeQuorumResponse(topics=topics)

    def _partition(self, topic: str, index: int) -> ResponsePartitionData:
        try:
            partition = self._replicas.find(topic, index)
            partition.check_leader_epoch(UNKNOWN_EPOCH)
        except Exception as error:
            code, _ = error_code_of(error)
            return ResponsePartitionData(index, code, error_text(code))
        return _described(index, partition)


def _described(index: int, partition: Partition) -> ResponsePartitionData:
    leader = partition.leader
    assert leader is not None, "it was checked"
    followers = {replica: progress.log_end_offset for replica, progress in leader.followers.items()}
    ends = {**followers, leader.broker_id: partition.log_end_offset}
    return ResponsePartitionData(
        partition_index=index,
        error_code=ErrorCode.NONE,
        leader_id=leader.broker_id,
        leader_epoch=leader.leader_epoch,
        high_watermark=partition.high_watermark,
        current_voters=[ReplicaState(replica, log_end_offset=ends[replica]) for replica in leader.replicas],
    )
