"""DescribeTopicPartitions: topics and their partitions, in pages."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Bool, Int16, Int32, String, Uuid, message, request, response


@message
class TopicRequest:
    name: String = ""


@message
class Cursor:
    topic_name: String = ""
    partition_index: Int32 = 0


@message
class DescribeTopicPartitionsRequest:
    SCHEMA: ClassVar = request(75)

    topics: list[TopicRequest] = field(default_factory=list)
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


@message
class DescribeTopicPartitionsResponsePartition:
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = field(default_factory=list)
    isr_nodes: list[Int32] = field(default_factory=list)
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = field(default_factory=list)


@message
class DescribeTopicPartitionsResponseTopic:
    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(default_factory=list)
    topic_authorized_operations: Int32 = -2147483648


@message
class DescribeTopicPartitionsResponse:
    SCHEMA: ClassVar = response(75)

    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: Cursor | None = None
