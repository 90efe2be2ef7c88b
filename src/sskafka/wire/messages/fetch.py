"""Fetch: read record batches from partitions, as a consumer or as a follower."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
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
    tagged,
    until,
)


@message
class ReplicaState:
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@message
class FetchPartition:
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(9), ignorable] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, tagged(0, since=17), ignorable] = ZERO_UUID
    high_watermark: Annotated[Int64, tagged(1, since=18), ignorable] = 0x7FFF_FFFF_FFFF_FFFF


@message
class FetchTopic:
    topic: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[FetchPartition] = field(default_factory=list)


@message
class ForgottenTopic:
    topic: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[Int32] = field(default_factory=list)


@message
class FetchRequest:
    SCHEMA: ClassVar = request(1)

    cluster_id: Annotated[String | None, tagged(0, since=12), ignorable] = None
    replica_id: Annotated[Int32, until(14)] = -1
    replica_state: Annotated[ReplicaState, tagged(1, since=15)] = field(default_factory=ReplicaState)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 0x7FFF_FFFF
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7), ignorable] = 0
    session_epoch: Annotated[Int32, since(7), ignorable] = -1
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = field(default_factory=list)
    rack_id: Annotated[String, since(11), ignorable] = ""


@message
class EpochEndOffset:
    epoch: Int32 = -1
    end_offset: Int64 = -1


@message
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@message
class SnapshotId:
    end_offset: Int64 = -1
    epoch: Int32 = -1


@message
class AbortedTransaction:
    producer_id: Int64 = 0
    first_offset: Int64 = 0


@message
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    diverging_epoch: Annotated[EpochEndOffset, tagged(0, since=12), ignorable] = field(default_factory=EpochEndOffset)
    current_leader: Annotated[LeaderIdAndEpoch, tagged(1, since=12), ignorable] = field(
        default_factory=LeaderIdAndEpoch
    )
    snapshot_id: Annotated[SnapshotId, tagged(2, since=12), ignorable] = field(default_factory=SnapshotId)
    aborted_transactions: list[AbortedTransaction] | None = field(default_factory=list)
    preferred_read_replica: Annotated[Int32, since(11), ignorable] = -1
    records: Records | None = None


@message
class FetchableTopicResponse:
    topic: Annotated[String, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@message
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message
class FetchResponse:
    SCHEMA: ClassVar = response(1)

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7), ignorable] = 0
    session_id: Annotated[Int32, since(7), ignorable] = 0
    responses: list[FetchableTopicResponse] = field(default_factory=list)
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=16), ignorable] = field(default_factory=list)
