"""DescribeQuorum: leader, voters and observers of the metadata quorum, with their log end offsets."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, String, UInt16, Uuid, ignorable, message, request, response, since


@message
class RequestPartitionData:
    partition_index: Int32 = 0


@message
class RequestTopicData:
    topic_name: String = ""
    partitions: list[RequestPartitionData] = field(default_factory=list)


@message
class DescribeQuorumRequest:
    SCHEMA: ClassVar = request(55)

    topics: list[RequestTopicData] = field(default_factory=list)


@message
class ReplicaState:
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(2), ignorable] = ZERO_UUID
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Annotated[Int64, since(1), ignorable] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1), ignorable] = -1


@message
class ResponsePartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2), ignorable] = ""
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: list[ReplicaState] = field(default_factory=list)
    observers: list[ReplicaState] = field(default_factory=list)


@message
class ResponseTopicData:
    topic_name: String = ""
    partitions: list[ResponsePartitionData] = field(default_factory=list)


@message
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@message
class Node:
    node_id: Int32 = 0
    listeners: list[Listener] = field(default_factory=list)


@message
class DescribeQuorumResponse:
    SCHEMA: ClassVar = response(55)

    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2), ignorable] = ""
    topics: list[ResponseTopicData] = field(default_factory=list)
    nodes: Annotated[list[Node], since(2), ignorable] = field(default_factory=list)
