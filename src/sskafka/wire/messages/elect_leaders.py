"""ElectLeaders: elect preferred leaders, or any live replica (unclean)."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, ignorable, message, request, response, since


@message
class TopicPartitions:
    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class ElectLeadersRequest:
    SCHEMA: ClassVar = request(43)

    election_type: Annotated[Int8, since(1)] = 0
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)
    timeout_ms: Int32 = 60000


@message
class PartitionResult:
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@message
class ReplicaElectionResult:
    topic: String = ""
    partition_result: list[PartitionResult] = field(default_factory=list)


@message
class ElectLeadersResponse:
    SCHEMA: ClassVar = response(43)

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1), ignorable] = 0
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)
