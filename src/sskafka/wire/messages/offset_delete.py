"""OffsetDelete: delete committed offsets of a group."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, String, message, request, response


@message
class OffsetDeleteRequestPartition:
    partition_index: Int32 = 0


@message
class OffsetDeleteRequestTopic:
    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


@message
class OffsetDeleteRequest:
    SCHEMA: ClassVar = request(47)

    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)


@message
class OffsetDeleteResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message
class OffsetDeleteResponseTopic:
    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


@message
class OffsetDeleteResponse:
    SCHEMA: ClassVar = response(47)

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)
