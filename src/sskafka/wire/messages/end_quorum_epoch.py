"""EndQuorumEpoch: the leader of the metadata quorum resigns and names successors."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Int16,
    Int32,
    String,
    UInt16,
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
class ReplicaInfo:
    candidate_id: Int32 = 0
    candidate_directory_id: Uuid = ZERO_UUID


@message
class RequestPartitionData:
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    preferred_successors: Annotated[list[Int32], until(0), ignorable] = field(default_factory=list)
    preferred_candidates: Annotated[list[ReplicaInfo], since(1), ignorable] = field(default_factory=list)


@message
class RequestTopicData:
    topic_name: String = ""
    partitions: list[RequestPartitionData] = field(default_factory=list)


@message
class LeaderEndpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@message
class EndQuorumEpochRequest:
    SCHEMA: ClassVar = request(54)

    cluster_id: String | None = None
    topics: list[RequestTopicData] = field(default_factory=list)
    leader_endpoints: Annotated[list[LeaderEndpoint], since(1), ignorable] = field(default_factory=list)


@message
class ResponsePartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@message
class ResponseTopicData:
    topic_name: String = ""
    partitions: list[ResponsePartitionData] = field(default_factory=list)


@message
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


@message
class EndQuorumEpochResponse:
    SCHEMA: ClassVar = response(54)

    error_code: Int16 = 0
    topics: list[ResponseTopicData] = field(default_factory=list)
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=1), ignorable] = field(default_factory=list)
