"""DescribeShareGroupOffsets: the start offsets of share groups."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, String, Uuid, ignorable, message, request, response, since


@message
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class DescribeShareGroupOffsetsRequestGroup:
    group_id: String = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(default_factory=list)


@message
class DescribeShareGroupOffsetsRequest:
    SCHEMA: ClassVar = request(90)

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(default_factory=list)


@message
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: Int32 = 0
    start_offset: Int64 = 0
    leader_epoch: Int32 = 0
    lag: Annotated[Int64, since(1), ignorable] = -1
    error_code: Int16 = 0
    error_message: String | None = None


@message
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: String = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(default_factory=list)


@message
class DescribeShareGroupOffsetsResponseGroup:
    group_id: String = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(default_factory=list)
    error_code: Int16 = 0
    error_message: String | None = None


@message
class DescribeShareGroupOffsetsResponse:
    SCHEMA: ClassVar = response(90)

    throttle_time_ms: Int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(default_factory=list)
