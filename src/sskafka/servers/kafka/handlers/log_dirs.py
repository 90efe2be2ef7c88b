"""DescribeLogDirs: the log directories of this broker, their replicas and free space.
AlterReplicaLogDirs: move replicas to another log directory.
"""

from collections.abc import Generator
from itertools import groupby
from typing import TYPE_CHECKING

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition, topic_name_problem
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.request import Request
from sskafka.storage.broker_directory import LogDir
from sskafka.storage.log_manager import LogManager
from sskafka.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from sskafka.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from sskafka.replication.replica_moves import ReplicaMoves


class LogDirsHandler:
    def __init__(self, logs: LogManager, replicas: ReplicaManager, moves: "ReplicaMoves | None") -> None:
        """`moves`: None if the broker has a single log directory."""
        self._logs = logs
        self._replicas = replicas
        self._moves = moves

    # -- description

    def describe(
        self, message: DescribeLogDirsRequest, request: Request
    ) -> Generator[None, None, DescribeLogDirsResponse]:
        wanted: set[TopicPartition] | None = None
        if message.topics is not None:
            wanted = set()
            for topic in message.topics:
                wanted.update(TopicPartition(topic.topic, index) for index in topic.partitions)
                yield
        response = DescribeLogDirsResponse()
        for directory in self._logs.directories:
            response.results.append((yield from self._describe_directory(directory, wanted)))
        return response

    def _describe_directory(
        self, directory: LogDir, wanted: set[TopicPartition] | None
    ) -> Generator[None, None, DescribeLogDirsResult]:
        if not directory.is_online:
            return DescribeLogDirsResult(
                ErrorCode.KAFKA_STORAGE_ERROR, directory.path, is_cordoned=directory.is_cordoned
            )
        total, usable = directory.usage
        high_watermarks = self._replicas.high_watermarks()
        described = []
        for key, log in tuple(directory.logs.items()):
            if _is_in(key, wanted):
                lag = max(0, high_watermarks.get(key, 0) - log.log_end_offset)
                described.append((key, DescribeLogDirsPartition(key.partition, log.size_bytes, lag)))
            yield
        for key, copy in directory.futures.items():
            if _is_in(key, wanted):
                original = self._logs.get(key)
                lag = max(0, original.log_end_offset - copy.log_end_offset) if original is not None else 0
                described.append((key, DescribeLogDirsPartition(key.partition, copy.size_bytes, lag, True)))
        described.sort(key=lambda pair: pair[0])
        topics = [
            DescribeLogDirsTopic(topic, [part for _, part in parts])
            for topic, parts in groupby(described, key=lambda pair: pair[0].topic)
        ]
        return DescribeLogDirsResult(ErrorCode.NONE, directory.path, topics, total, usable, directory.is_cordoned)

    # -- moves

    def alter(self, message: AlterReplicaLogDirsRequest, request: Request) -> AlterReplicaLogDirsResponse:
        """Start the moves and respond at once; DescribeLogDirs shows their progress."""
        results: dict[str, AlterReplicaLogDirTopicResult] = {}
        for wanted in message.dirs:
            for topic in wanted.topics:
                result = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic.name))
                for index in topic.partitions:
                    error = self._move(TopicPartition(topic.name, index), wanted.path)
                    result.partitions.append(AlterReplicaLogDirPartitionResult(index, error))
        return AlterReplicaLogDirsResponse(results=list(results.values()))

    def _move(self, topic_partition: TopicPartition, path: str) -> ErrorCode:
        target = self._logs.directory_at(path)
        if target is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if topic_name_problem(topic_partition.topic) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if target.is_cordoned:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        home = self._logs.log_dir_of(topic_partition)
        if not target.is_online or (home is not None and not home.is_online):
            return ErrorCode.KAFKA_STORAGE_ERROR
        if home is None:
            # a replica that is created later will use that directory
            self._logs.set_preferred_directory(topic_partition, target)
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if self._moves is not None:
            self._moves.ask(topic_partition, target)
        return ErrorCode.NONE


def _is_in(topic_partition: TopicPartition, wanted: set[TopicPartition] | None) -> bool:
    return wanted is None or topic_partition in wanted
