"""WriteShareGroupState: store changes to the state of share partitions."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int8, Int16, Int32, Int64, String, Uuid, ignorable, message, request, response, since


@message
class StateBatch:
    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_state: Int8 = 0
    delivery_count: Int16 = 0


@message
class PartitionData:
    partition: Int32 = 0
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, since(1), ignorable] = -1
    state_batches: list[StateBatch] = field(default_factory=list)


@message
class WriteStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class WriteShareGroupStateRequest:
    SCHEMA: ClassVar = request(85)

    group_id: String = ""
    topics: list[WriteStateData] = field(default_factory=list)


@message
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@message
class WriteStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@message
class WriteShareGroupStateResponse:
    SCHEMA: ClassVar = response(85)

    results: list[WriteStateResult] = field(default_factory=list)
