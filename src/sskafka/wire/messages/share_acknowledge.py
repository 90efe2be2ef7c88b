"""ShareAcknowledge: accept, release or reject records that a share group acquired."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    ignorable,
    message,
    request,
    response,
    since,
)


@message
class AcknowledgementBatch:
    first_offset: Int64 = 0
    last_offset: Int64 = 0
    acknowledge_types: list[Int8] = field(default_factory=list)


@message
class AcknowledgePartition:
    partition_index: Int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


@message
class AcknowledgeTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = field(default_factory=list)


@message
class ShareAcknowledgeRequest:
    SCHEMA: ClassVar = request(79)

    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    is_renew_ack: Annotated[Bool, since(2)] = False
    topics: list[AcknowledgeTopic] = field(default_factory=list)


@message
class LeaderIdAndEpoch:
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@message
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


@message
class ShareAcknowledgeTopicResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message
class ShareAcknowledgeResponse:
    SCHEMA: ClassVar = response(79)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(2), ignorable] = 0
    responses: list[ShareAcknowledgeTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
