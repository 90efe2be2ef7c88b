"""Vote: a candidate requests the vote or pre-vote of a voter of the metadata quorum."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    UInt16,
    Uuid,
    ignorable,
    message,
    request,
    response,
    since,
    tagged,
)


@message
class RequestPartitionData:
    partition_index: Int32 = 0
    replica_epoch: Int32 = 0
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(1), ignorable] = ZERO_UUID
    voter_directory_id: Annotated[Uuid, since(1), ignorable] = ZERO_UUID
    last_offset_epoch: Int32 = 0
    last_offset: Int64 = 0
    pre_vote: Annotated[Bool, since(2)] = False


@message
class RequestTopicData:
    topic_name: String = ""
    partitions: list[RequestPartitionData] = field(default_factory=list)


@message
class VoteRequest:
    SCHEMA: ClassVar = request(52)

    cluster_id: String | None = None
    voter_id: Annotated[Int32, since(1), ignorable] = -1
    topics: list[RequestTopicData] = field(default_factory=list)


@message
class ResponsePartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    vote_granted: Bool = False


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
class VoteResponse:
    SCHEMA: ClassVar = response(52)

    error_code: Int16 = 0
    topics: list[ResponseTopicData] = field(default_factory=list)
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=1), ignorable] = field(default_factory=list)
