"""ReadShareGroupStateSummary: start offset and epochs of share partitions, without their batches."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, String, Uuid, ignorable, request, response, since


@dataclass(slots=True)
class PartitionData:
    partition: Int32 = 0
    leader_epoch: Int32 = 0


@dataclass(slots=True)
class ReadStateSummaryData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True)
class ReadShareGroupStateSummaryRequest:
    SCHEMA: ClassVar = request(87, versions=(0, 1), flexible_from=0)

    group_id: String = ""
    topics: list[ReadStateSummaryData] = field(default_factory=list)


@dataclass(slots=True)
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, since(1), ignorable] = -1


@dataclass(slots=True)
class ReadStateSummaryResult:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = field(default_factory=list)


@dataclass(slots=True)
class ReadShareGroupStateSummaryResponse:
    SCHEMA: ClassVar = response(87, versions=(0, 1), flexible_from=0)

    results: list[ReadStateSummaryResult] = field(default_factory=list)
