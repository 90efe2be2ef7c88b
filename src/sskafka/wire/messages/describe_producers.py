"""DescribeProducers: the active producers of partitions."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class TopicRequest:
    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


@message
class DescribeProducersRequest:
    SCHEMA: ClassVar = request(61)

    topics: list[TopicRequest] = field(default_factory=list)


@message
class ProducerState:
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


@message
class PartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ProducerState] = field(default_factory=list)


@message
class TopicResponse:
    name: String = ""
    partitions: list[PartitionResponse] = field(default_factory=list)


@message
class DescribeProducersResponse:
    SCHEMA: ClassVar = response(61)

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = field(default_factory=list)
