"""AlterPartitionReassignments: start or cancel reassignments of partitions to other brokers."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, String, ignorable, message, request, response, since


@message
class ReassignablePartition:
    partition_index: Int32 = 0
    replicas: list[Int32] | None = None


@message
class ReassignableTopic:
    name: String = ""
    partitions: list[ReassignablePartition] = field(default_factory=list)


@message
class AlterPartitionReassignmentsRequest:
    SCHEMA: ClassVar = request(45)

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    topics: list[ReassignableTopic] = field(default_factory=list)


@message
class ReassignablePartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@message
class ReassignableTopicResponse:
    name: String = ""
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list)


@message
class AlterPartitionReassignmentsResponse:
    SCHEMA: ClassVar = response(45)

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, since(1), ignorable] = True
    error_code: Int16 = 0
    error_message: String | None = ""
    responses: list[ReassignableTopicResponse] = field(default_factory=list)
