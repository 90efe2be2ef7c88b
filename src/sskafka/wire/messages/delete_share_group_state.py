"""DeleteShareGroupState: delete the stored state of share partitions."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, Uuid, message, request, response


@message
class PartitionData:
    partition: Int32 = 0


@message
class DeleteStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class DeleteShareGroupStateRequest:
    SCHEMA: ClassVar = request(86)

    group_id: String = ""
    topics: list[DeleteStateData] = field(default_factory=list)


@message
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@message
class DeleteStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@message
class DeleteShareGroupStateResponse:
    SCHEMA: ClassVar = response(86)

    results: list[DeleteStateResult] = field(default_factory=list)
