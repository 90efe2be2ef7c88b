"""ListOffsets: the offset of a partition at a timestamp, at its start or at its end."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class ListOffsetsPartition:
    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(4), ignorable] = -1
    timestamp: Int64 = 0


@message
class ListOffsetsTopic:
    name: String = ""
    partitions: list[ListOffsetsPartition] = field(default_factory=list)


@message
class ListOffsetsRequest:
    SCHEMA: ClassVar = request(2)

    replica_id: Int32 = 0
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: list[ListOffsetsTopic] = field(default_factory=list)
    timeout_ms: Annotated[Int32, since(10), ignorable] = 0


@message
class ListOffsetsPartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4), ignorable] = -1


@message
class ListOffsetsTopicResponse:
    name: String = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list)


@message
class ListOffsetsResponse:
    SCHEMA: ClassVar = response(2)

    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list)
