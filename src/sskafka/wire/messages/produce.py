"""Produce: append record batches to partitions."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Uuid,
    ignorable,
    message,
    request,
    response,
    since,
    tagged,
    until,
)


@message
class PartitionProduceData:
    index: Int32 = 0
    records: Records | None = None


@message
class TopicProduceData:
    name: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partition_data: list[PartitionProduceData] = field(default_factory=list)


@message
class ProduceRequest:
    SCHEMA: ClassVar = request(0)

    transactional_id: String | None = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = field(default_factory=list)


@message
class BatchIndexAndErrorMessage:
    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


@message
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@message
class PartitionProduceResponse:
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8), ignorable] = field(default_factory=list)
    error_message: Annotated[String | None, since(8), ignorable] = None
    current_leader: Annotated[LeaderIdAndEpoch, tagged(0, since=10), ignorable] = field(
        default_factory=LeaderIdAndEpoch
    )


@message
class TopicProduceResponse:
    name: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = field(default_factory=list)


@message
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message
class ProduceResponse:
    SCHEMA: ClassVar = response(0)

    responses: list[TopicProduceResponse] = field(default_factory=list)
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=10), ignorable] = field(default_factory=list)
