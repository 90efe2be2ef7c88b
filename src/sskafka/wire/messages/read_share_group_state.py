"""ReadShareGroupState: the stored state of share partitions, batch by batch."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int8, Int16, Int32, Int64, String, Uuid, message, request, response


@message
class PartitionData:
    partition: Int32 = 0
    leader_epoch: Int32 = 0


@message
class ReadStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class ReadShareGroupStateRequest:
    SCHEMA: ClassVar = request(84)

    group_id: String = ""
    topics: list[ReadStateData] = field(default_factory=list)


@message
class StateBatch:
    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_state: Int8 = 0
    delivery_count: Int16 = 0


@message
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32 = 0
    start_offset: Int64 = 0
    state_batches: list[StateBatch] = field(default_factory=list)


@message
class ReadStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@message
class ReadShareGroupStateResponse:
    SCHEMA: ClassVar = response(84)

    results: list[ReadStateResult] = field(default_factory=list)
