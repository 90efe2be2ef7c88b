"""AssignReplicasToDirs: a broker reports the log directories of its replicas to the controller."""

from dataclasses import field
from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, Int64, Uuid, message, request, response


@message
class RequestPartitionData:
    partition_index: Int32 = 0


@message
class RequestTopicData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[RequestPartitionData] = field(default_factory=list)


@message
class RequestDirectoryData:
    id: Uuid = ZERO_UUID
    topics: list[RequestTopicData] = field(default_factory=list)


@message
class AssignReplicasToDirsRequest:
    SCHEMA: ClassVar = request(73)

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    directories: list[RequestDirectoryData] = field(default_factory=list)


@message
class ResponsePartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message
class ResponseTopicData:
    topic_id: Uuid = ZERO_UUID
    partitions: list[ResponsePartitionData] = field(default_factory=list)


@message
class ResponseDirectoryData:
    id: Uuid = ZERO_UUID
    topics: list[ResponseTopicData] = field(default_factory=list)


@message
class AssignReplicasToDirsResponse:
    SCHEMA: ClassVar = response(73)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    directories: list[ResponseDirectoryData] = field(default_factory=list)
