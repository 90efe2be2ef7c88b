"""TxnOffsetCommit: commit the offsets of a group as part of a transaction."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class TxnOffsetCommitRequestPartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(2), ignorable] = -1
    committed_metadata: String | None = ""


@message
class TxnOffsetCommitRequestTopic:
    name: String = ""
    partitions: list[TxnOffsetCommitRequestPartition] = field(default_factory=list)


@message
class TxnOffsetCommitRequest:
    SCHEMA: ClassVar = request(28)

    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, since(3)] = -1
    member_id: Annotated[String, since(3)] = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    topics: list[TxnOffsetCommitRequestTopic] = field(default_factory=list)


@message
class TxnOffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message
class TxnOffsetCommitResponseTopic:
    name: String = ""
    partitions: list[TxnOffsetCommitResponsePartition] = field(default_factory=list)


@message
class TxnOffsetCommitResponse:
    SCHEMA: ClassVar = response(28)

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(default_factory=list)
