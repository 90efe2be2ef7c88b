"""InitializeShareGroupState: create the stored state of share partitions."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, String, Uuid, message, request, response


@message
class PartitionData:
    partition: Int32 = 0
    state_epoch: Int32 = 0
    start_offset: Int64 = 0


@message
class InitializeStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class InitializeShareGroupStateRequest:
    SCHEMA: ClassVar = request(83)

    group_id: String = ""
    topics: list[InitializeStateData] = field(default_factory=list)


@message
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@message
class InitializeStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@message
class InitializeShareGroupStateResponse:
    SCHEMA: ClassVar = response(83)

    results: list[InitializeStateResult] = field(default_factory=list)
