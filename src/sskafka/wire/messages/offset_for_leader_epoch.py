"""OffsetForLeaderEpoch: the end offset of a leader epoch in the log of a partition."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class OffsetForLeaderPartition:
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


@message
class OffsetForLeaderTopic:
    topic: String = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)


@message
class OffsetForLeaderEpochRequest:
    SCHEMA: ClassVar = request(23)

    replica_id: Annotated[Int32, since(3), ignorable] = -2
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)


@message
class EpochEndOffset:
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@message
class OffsetForLeaderTopicResult:
    topic: String = ""
    partitions: list[EpochEndOffset] = field(default_factory=list)


@message
class OffsetForLeaderEpochResponse:
    SCHEMA: ClassVar = response(23)

    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)
