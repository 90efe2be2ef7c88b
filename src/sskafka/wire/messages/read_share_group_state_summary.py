"""ReadShareGroupStateSummary: start offset and epochs of share partitions, without their batches."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, String, Uuid, ignorable, message, request, response, since


@message
class PartitionData:
    partition: Int32 = 0
    leader_epoch: Int32 = 0


@message
class ReadStateSummaryData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class ReadShareGroupStateSummaryRequest:
    SCHEMA: ClassVar = request(87)

    group_id: String = ""
    topics: list[ReadStateSummaryData] = field(default_factory=list)


@message
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, since(1), ignorable] = -1


@message
class ReadStateSummaryResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@message
class ReadShareGroupStateSummaryResponse:
    SCHEMA: ClassVar = response(87)

    results: list[ReadStateSummaryResult] = field(default_factory=list)
