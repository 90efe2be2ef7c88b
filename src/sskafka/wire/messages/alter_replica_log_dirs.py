"""AlterReplicaLogDirs: move replicas between the log directories of a broker."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, String, message, request, response


@message
class AlterReplicaLogDirTopic:
    name: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class AlterReplicaLogDir:
    path: String = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list)


@message
class AlterReplicaLogDirsRequest:
    SCHEMA: ClassVar = request(34)

    dirs: list[AlterReplicaLogDir] = field(default_factory=list)


@message
class AlterReplicaLogDirPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message
class AlterReplicaLogDirTopicResult:
    topic_name: String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list)


@message
class AlterReplicaLogDirsResponse:
    SCHEMA: ClassVar = response(34)

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list)
