"""DescribeLogDirs: where the replicas of this broker lie and how much room is left there."""

from collections.abc import Mapping
from itertools import groupby

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request
from sskafka.storage.broker_directory import BrokerDirectory
from sskafka.storage.log import Log
from sskafka.storage.log_manager import LogManager
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


class LogDirsHandler:
    def __init__(self, logs: LogManager, replicas: ReplicaManager) -> None:
        self._logs = logs
        self._replicas = replicas

    def register(self, registry: Registry) -> None:
        registry.add_message(ApiKey.DESCRIBE_LOG_DIRS, self.describe, cluster_operation=Operation.DESCRIBE)

    def describe(self, message: DescribeLogDirsRequest, request: Request) -> DescribeLogDirsResponse:
        wanted = None
        if message.topics is not None:
            wanted = {TopicPartition(topic.topic, index) for topic in message.topics for index in topic.partitions}
        high_watermarks = self._replicas.high_watermarks()
        return DescribeLogDirsResponse(
            results=[_describe_directory(directory, wanted, high_watermarks) for directory in self._logs.directories]
        )


def _describe_directory(
    directory: BrokerDirectory, wanted: set[TopicPartition] | None, high_watermarks: Mapping[TopicPartition, int]
) -> DescribeLogDirsResult:
    if not directory.is_online:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, directory.path)
    total, usable = directory.usage
    chosen = sorted(key for key in directory.logs if wanted is None or key in wanted)
    return DescribeLogDirsResult(
        ErrorCode.NONE,
        directory.path,
        [
            DescribeLogDirsTopic(
                topic, [_describe_log(directory.logs[key], high_watermarks.get(key, 0)) for key in keys]
            )
            for topic, keys in groupby(chosen, key=lambda key: key.topic)
        ],
        total,
        usable,
    )


def _describe_log(log: Log, high_watermark: int) -> DescribeLogDirsPartition:
    lag = max(0, high_watermark - log.log_end_offset)
    return DescribeLogDirsPartition(log.topic_partition.partition, log.size_bytes, lag)
