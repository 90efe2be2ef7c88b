"""DescribeBrokerLoad: the counters of this broker, which only grow: two responses give the rates."""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice

from sskafka.model.acl import ResourceType
from sskafka.model.counters import ConnectionCounters, RequestCounters
from sskafka.model.version import __version__
from sskafka.replication.replica_manager import ReplicaManager, TopicReplicas
from sskafka.servers.kafka.request import Request
from sskafka.servers.process_usage import process_usage
from sskafka.wire.messages.describe_broker_load import (
    DescribeBrokerLoadRequest,
    DescribeBrokerLoadResponse,
    RequestLoad,
    TopicLoad,
)

TOPICS_PER_SLICE = 200


class BrokerLoadHandler:
    """`connections` returns the counters of all listeners, `requests` those of all APIs."""

    def __init__(
        self,
        replicas: ReplicaManager,
        connections: Callable[[], Iterable[ConnectionCounters]],
        requests: Callable[[], Iterator[RequestCounters]],
    ) -> None:
        self._replicas = replicas
        self._connections = connections
        self._requests = requests

    def describe_broker_load(
        self, message: DescribeBrokerLoadRequest, request: Request
    ) -> Generator[None, None, DescribeBrokerLoadResponse]:
        usage = process_usage()
        answer = DescribeBrokerLoadResponse(
            version=__version__,
            cores=usage.cores,
            uptime_ms=usage.uptime_ms,
            cpu_ms=usage.cpu_ms,
            memory_bytes=usage.memory_bytes,
            connections=sum(counters.opened - counters.closed for counters in self._connections()),
            replication_bytes_in=self._replicas.counters.bytes_in,
            replication_bytes_out=self._replicas.counters.bytes_out,
            requests=[_request_load(counters) for counters in self._requests() if counters.requests],
        )
        wanted = None if message.topics is None else frozenset(message.topics)
        topics = iter(list(self._replicas.topics()))
        while part := list(islice(topics, TOPICS_PER_SLICE)):
            for topic in part:
                self._add(answer, topic, wanted, request)
            yield
        return answer

    def _add(
        self, answer: DescribeBrokerLoadResponse, topic: TopicReplicas, wanted: frozenset[str] | None, request: Request
    ) -> None:
        counters = topic.counters
        answer.messages_in += counters.messages_in
        answer.bytes_in += counters.bytes_in
        answer.bytes_out += counters.bytes_out
        if (wanted is None or topic.name in wanted) and request.may_see(ResourceType.TOPIC, topic.name):
            size = sum(partition.size_bytes for partition in topic.partitions.values())
            answer.topics.append(
                TopicLoad(topic.name, counters.messages_in, counters.bytes_in, counters.bytes_out, size)
            )


def _request_load(counters: RequestCounters) -> RequestLoad:
    return RequestLoad(counters.name, counters.requests, counters.errors, counters.total_time().latency_buckets)
