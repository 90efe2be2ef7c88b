"""DescribeReaders: the fetch positions of clients, which shows the lag of consumers that commit no offsets."""

from collections.abc import Iterator

from sskafka.model.acl import ResourceType
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.describe_readers import DescribeReadersRequest, DescribeReadersResponse, ReaderPosition


class ReaderHandlers:
    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    def describe_readers(self, message: DescribeReadersRequest, request: Request) -> DescribeReadersResponse:
        readers: list[ReaderPosition] = []
        for topic in self._replicas.topics():
            is_wanted = message.topics is None or topic.name in message.topics
            if is_wanted and request.may_see(ResourceType.TOPIC, topic.name):
                for partition in topic.partitions.values():
                    readers += self._readers_of(partition)
        return DescribeReadersResponse(readers=readers)

    def _readers_of(self, partition: Partition) -> Iterator[ReaderPosition]:
        now_ms = self._replicas.monotonic_ms()
        topic, index = partition.topic_partition
        for client_id, (fetch_offset, fetched_ms) in partition.readers.items():
            age_ms = max(0, int(now_ms - fetched_ms))
            yield ReaderPosition(client_id, topic, index, fetch_offset, partition.high_watermark, age_ms)
