"""FetchSnapshot: read a snapshot of the metadata log in chunks."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Int16,
    Int32,
    Int64,
    Records,
    String,
    UInt16,
    Uuid,
    ignorable,
    message,
    request,
    response,
    tagged,
)


@message
class SnapshotId:
    end_offset: Int64 = 0
    epoch: Int32 = 0


@message
class RequestPartitionSnapshot:
    partition: Int32 = 0
    current_leader_epoch: Int32 = 0
    snapshot_id: SnapshotId = field(default_factory=SnapshotId)
    position: Int64 = 0
    replica_directory_id: Annotated[Uuid, tagged(0, since=1), ignorable] = ZERO_UUID


@message
class RequestTopicSnapshot:
    name: String = ""
    partitions: list[RequestPartitionSnapshot] = field(default_factory=list)


@message
class FetchSnapshotRequest:
    SCHEMA: ClassVar = request(59)

    cluster_id: Annotated[String | None, tagged(0)] = None
    replica_id: Int32 = -1
    max_bytes: Int32 = 0x7FFF_FFFF
    topics: list[RequestTopicSnapshot] = field(default_factory=list)


@message
class LeaderIdAndEpoch:
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@message
class ResponsePartitionSnapshot:
    index: Int32 = 0
    error_code: Int16 = 0
    snapshot_id: SnapshotId = field(default_factory=SnapshotId)
    current_leader: Annotated[LeaderIdAndEpoch, tagged(0)] = field(default_factory=LeaderIdAndEpoch)
    size: Int64 = 0
    position: Int64 = 0
    unaligned_records: Records = b""


@message
class ResponseTopicSnapshot:
    name: String = ""
    partitions: list[ResponsePartitionSnapshot] = field(default_factory=list)


@message
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


@message
class FetchSnapshotResponse:
    SCHEMA: ClassVar = response(59)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[ResponseTopicSnapshot] = field(default_factory=list)
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=1), ignorable] = field(default_factory=list)
