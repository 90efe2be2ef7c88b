"""DescribeLogDirs: where the replicas of this broker lie and how much room is left there."""

from itertools import groupby

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request
from sskafka.storage.broker_directory import BrokerDirectory
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
        return DescribeLogDirsResponse(
            results=[self._describe_directory(directory, wanted) for directory in self._logs.directories]
        )

    def _describe_directory(
        self, directory: BrokerDirectory, wanted: set[TopicPartition] | None
    ) -> DescribeLogDirsResult:
        if not directory.is_online:
            return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, directory.path)
        total, usable = directory.usage
        chosen = sorted(key for key in directory.logs if wanted is None or key in wanted)
        return DescribeLogDirsResult(
            ErrorCode.NONE,
            directory.path,
            [
                DescribeLogDirsTopic(topic, [self._describe_partition(directory, key) for key in keys])
                for topic, keys in groupby(chosen, key=lambda key: key.topic)
            ],
            total,
            usable,
        )

    def _describe_partition(self, directory: BrokerDirectory, key: TopicPartition) -> DescribeLogDirsPartition:
        log = directory.logs[key]
        try:
            lag = max(0, self._replicas.find(key.topic, key.partition).high_watermark - log.log_end_offset)
        except Exception:  # the metadata log is no replica of a topic
            lag = 0
        return DescribeLogDirsPartition(key.partition, log.size_bytes, lag)
