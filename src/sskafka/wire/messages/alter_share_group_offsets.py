"""AlterShareGroupOffsets: change the start offsets of a share group."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, String, Uuid, message, request, response


@message
class AlterShareGroupOffsetsRequestPartition:
    partition_index: Int32 = 0
    start_offset: Int64 = 0


@message
class AlterShareGroupOffsetsRequestTopic:
    topic_name: String = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(default_factory=list)


@message
class AlterShareGroupOffsetsRequest:
    SCHEMA: ClassVar = request(91)

    group_id: String = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(default_factory=list)


@message
class AlterShareGroupOffsetsResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@message
class AlterShareGroupOffsetsResponseTopic:
    topic_name: String = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(default_factory=list)


@message
class AlterShareGroupOffsetsResponse:
    SCHEMA: ClassVar = response(91)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(default_factory=list)
