"""ListPartitionReassignments: list the ongoing reassignments."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, String, message, request, response


@message
class ListPartitionReassignmentsTopics:
    name: String = ""
    partition_indexes: list[Int32] = field(default_factory=list)


@message
class ListPartitionReassignmentsRequest:
    SCHEMA: ClassVar = request(46)

    timeout_ms: Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@message
class OngoingPartitionReassignment:
    partition_index: Int32 = 0
    replicas: list[Int32] = field(default_factory=list)
    adding_replicas: list[Int32] = field(default_factory=list)
    removing_replicas: list[Int32] = field(default_factory=list)


@message
class OngoingTopicReassignment:
    name: String = ""
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list)


@message
class ListPartitionReassignmentsResponse:
    SCHEMA: ClassVar = response(46)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: list[OngoingTopicReassignment] = field(default_factory=list)
