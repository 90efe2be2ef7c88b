"""DescribeReaders: the fetch positions of clients, which shows the lag of consumers that commit no offsets."""

from collections.abc import Generator, Iterator

from sskafka.model.acl import ResourceType
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.describe_readers import DescribeReadersRequest, DescribeReadersResponse, ReaderPosition

PARTITIONS_PER_STEP = 100


class ReaderHandlers:
    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    def describe_readers(
        self, message: DescribeReadersRequest, request: Request
    ) -> Generator[None, None, DescribeReadersResponse]:
        wanted = None if message.topics is None else set(message.topics)
        readers: list[ReaderPosition] = []
        for topic in list(self._replicas.topics()):
            if (wanted is None or topic.name in wanted) and request.may_see(ResourceType.TOPIC, topic.name):
                for number, partition in enumerate(list(topic.partitions.values()), 1):
                    readers += self._readers_of(partition)
                    if not number % PARTITIONS_PER_STEP:
                        yield
            yield
        return DescribeReadersResponse(readers=readers)

    def _readers_of(self, partition: Partition) -> Iterator[ReaderPosition]:
        now_ms = self._replicas.monotonic_ms()
        topic, index = partition.topic_partition
        for client_id, (fetch_offset, fetched_ms) in partition.readers.items():
            age_ms = max(0, int(now_ms - fetched_ms))
            yield ReaderPosition(client_id, topic, index, fetch_offset, partition.high_watermark, age_ms)
