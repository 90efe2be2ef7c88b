"""CreatePartitions: add partitions to topics."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, String, message, request, response


@message
class CreatePartitionsAssignment:
    broker_ids: list[Int32] = field(default_factory=list)


@message
class CreatePartitionsTopic:
    name: String = ""
    count: Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list)


@message
class CreatePartitionsRequest:
    SCHEMA: ClassVar = request(37)

    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: Int32 = 0
    validate_only: Bool = False


@message
class CreatePartitionsTopicResult:
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


@message
class CreatePartitionsResponse:
    SCHEMA: ClassVar = response(37)

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list)
