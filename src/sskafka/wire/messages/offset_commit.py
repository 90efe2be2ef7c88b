"""OffsetCommit: commit the offsets of a group."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, String, Uuid, ignorable, message, request, response, since, until


@message
class OffsetCommitRequestPartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(6), ignorable] = -1
    committed_metadata: String | None = ""


@message
class OffsetCommitRequestTopic:
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)


@message
class OffsetCommitRequest:
    SCHEMA: ClassVar = request(8)

    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(7)] = None
    retention_time_ms: Annotated[Int64, until(4), ignorable] = -1
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)


@message
class OffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message
class OffsetCommitResponseTopic:
    name: Annotated[String, until(9), ignorable] = ""
    topic_id: Annotated[Uuid, since(10), ignorable] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)


@message
class OffsetCommitResponse:
    SCHEMA: ClassVar = response(8)

    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)
