"""ShareFetch: acquire records for a member of a share group, and acknowledge earlier ones."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
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
class FetchPartition:
    partition_index: Int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


@message
class FetchTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: list[FetchPartition] = field(default_factory=list)


@message
class ForgottenTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)


@message
class ShareFetchRequest:
    SCHEMA: ClassVar = request(78)

    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 0x7FFF_FFFF
    max_records: Int32 = 0
    batch_size: Int32 = 0
    share_acquire_mode: Annotated[Int8, since(2), ignorable] = 0
    is_renew_ack: Annotated[Bool, since(2)] = False
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)


@message
class LeaderIdAndEpoch:
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@message
class AcquiredRecords:
    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_count: Int16 = 0


@message
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acknowledge_error_code: Int16 = 0
    acknowledge_error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: Records = b""
    acquired_records: list[AcquiredRecords] = field(default_factory=list)


@message
class ShareFetchableTopicResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message
class ShareFetchResponse:
    SCHEMA: ClassVar = response(78)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = 0
    responses: list[ShareFetchableTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
