"""BeginQuorumEpoch: a new leader of the metadata quorum announces itself to the voters."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, UInt16, Uuid, ignorable, message, request, response, since, tagged


@message
class RequestPartitionData:
    partition_index: Int32 = 0
    voter_directory_id: Annotated[Uuid, since(1), ignorable] = ZERO_UUID
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


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
class BeginQuorumEpochRequest:
    SCHEMA: ClassVar = request(53)

    cluster_id: String | None = None
    voter_id: Annotated[Int32, since(1), ignorable] = -1
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
class BeginQuorumEpochResponse:
    SCHEMA: ClassVar = response(53)

    error_code: Int16 = 0
    topics: list[ResponseTopicData] = field(default_factory=list)
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=1), ignorable] = field(default_factory=list)
