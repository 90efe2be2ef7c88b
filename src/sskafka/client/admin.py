"""Admin client: create, change and describe topics, and describe the cluster.

Calls for several resources return one outcome per resource: the result, or the KafkaError for that resource.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from sskafka.client.cluster import Cluster
from sskafka.client.connection import BrokerConnection
from sskafka.client.errors import broker_error, raise_for
from sskafka.client.metadata import TopicView
from sskafka.client.offsets import by_topic
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.model.values import value
from sskafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from sskafka.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sskafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from sskafka.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from sskafka.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

T = TypeVar("T")
Outcome: TypeAlias = T | KafkaError

USE_BROKER_DEFAULT = -1


@value
class NewTopic:
    name: str
    partitions: int = USE_BROKER_DEFAULT
    replication_factor: int = USE_BROKER_DEFAULT
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Replicas of each partition. If set, leave `partitions` and `replication_factor` at their defaults."""


class CreatedTopic(NamedTuple):
    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int


class Admin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, Outcome[CreatedTopic]]:
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=self._cluster.config.request_timeout_ms,
            validate_only=validate_only,
        )

        async def attempt(connection: BrokerConnection) -> dict[str, Outcome[CreatedTopic]]:
            response = await connection.request(request, CreateTopicsResponse)
            return {
                topic.name: _failure(topic.error_code, topic.error_message)
                or CreatedTopic(topic.name, topic.topic_id, topic.num_partitions, topic.replication_factor)
                for topic in response.topics
            }

        return await self._at_controller(attempt)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        names = list(names)
        timeout_ms = self._cluster.config.request_timeout_ms

        async def attempt(connection: BrokerConnection) -> dict[str, KafkaError | None]:
            version = connection.version_for(DeleteTopicsRequest)
            by_state = [DeleteTopicState(name=name) for name in names] if version >= 6 else []
            request = DeleteTopicsRequest(topics=by_state, topic_names=names, timeout_ms=timeout_ms)
            response = await connection.request(request, DeleteTopicsResponse, version=version)
            return {topic.name or "": _failure(topic.error_code, topic.error_message) for topic in response.responses}

        outcomes = await self._at_controller(attempt)
        self._cluster.forget(*names)
        return outcomes

    async def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        """Increase the number of partitions of each topic to its count."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items()],
            timeout_ms=self._cluster.config.request_timeout_ms,
            validate_only=validate_only,
        )

        async def attempt(connection: BrokerConnection) -> dict[str, KafkaError | None]:
            response = await connection.request(request, CreatePartitionsResponse)
            return {topic.name: _failure(topic.error_code, topic.error_message) for topic in response.results}

        outcomes = await self._at_controller(attempt)
        self._cluster.forget(*counts)
        return outcomes

    async def list_topics(self, *, internal: bool = False) -> list[TopicView]:
        view = await self._cluster.retrying(lambda: self._cluster.refresh(None))
        topics = (topic for topic in view.topics.values() if internal or not topic.is_internal)
        return sorted(topics, key=lambda topic: topic.name)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, Outcome[TopicView]]:
        names = list(names)
        self._cluster.forget(*names)
        outcomes: dict[str, Outcome[TopicView]] = {}
        for name in names:
            try:
                outcomes[name] = await self._cluster.retrying(partial(self._cluster.topic, name), topics=[name])
            except KafkaError as error:
                outcomes[name] = error
        return outcomes

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, Outcome[int]]:
        """Delete the records below the given offsets (-1: all); return the new log start offset of each partition."""
        topics = {partition.topic for partition in before}
        groups = await self._cluster.retrying(lambda: self._cluster.by_leader(before), topics=topics)
        outcomes: dict[TopicPartition, Outcome[int]] = {}
        for leader, partitions in groups.items():
            connection = await self._cluster.connection_to(leader)
            request = self._delete_records_request({partition: before[partition] for partition in partitions})
            response = await connection.request(request, DeleteRecordsResponse)
            for topic in response.topics:
                for answer in topic.partitions:
                    failure = _failure(answer.error_code)
                    partition = TopicPartition(topic.name, answer.partition_index)
                    outcomes[partition] = failure or answer.low_watermark
        return outcomes

    def _delete_records_request(self, before: Mapping[TopicPartition, int]) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            timeout_ms=self._cluster.config.request_timeout_ms,
            topics=[
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(partition_index=partition.partition, offset=before[partition])
                        for partition in partitions
                    ],
                )
                for name, partitions in by_topic(before).items()
            ],
        )

    async def describe_cluster(self, *, include_fenced: bool = False) -> "ClusterDescription":
        """Describe the live brokers, or all registered ones where the broker can list fenced brokers."""

        async def attempt() -> DescribeClusterResponse:
            connection = await self._cluster.any_connection()
            version = connection.version_for(DescribeClusterRequest)
            request = DescribeClusterRequest(include_fenced_brokers=include_fenced and version >= 2)
            response = await connection.request(request, DescribeClusterResponse, version=version)
            raise_for(response.error_code, response.error_message)
            return response

        response = await self._cluster.retrying(attempt)
        return ClusterDescription(response.cluster_id, response.controller_id, tuple(response.brokers))

    async def describe_log_dirs(self, broker_id: int) -> list[DescribeLogDirsResult]:
        """Describe the log directories of one broker, with all its partitions."""

        async def attempt() -> DescribeLogDirsResponse:
            await self._cluster.refresh()
            connection = await self._cluster.connection_to(broker_id)
            response = await connection.request(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
            raise_for(response.error_code)
            return response

        return (await self._cluster.retrying(attempt)).results

    async def _at_controller(self, attempt: Callable[[BrokerConnection], Awaitable[dict[str, T]]]) -> dict[str, T]:
        """Run `attempt` at the controller; refresh the metadata and retry if the broker is no longer the controller."""

        async def once() -> dict[str, T]:
            outcomes = await attempt(await self._cluster.controller_connection())
            for outcome in outcomes.values():
                if isinstance(outcome, KafkaError) and outcome.code == ErrorCode.NOT_CONTROLLER:
                    await self._cluster.refresh()
                    raise outcome
            return outcomes

        return await self._cluster.retrying(once)


class ClusterDescription(NamedTuple):
    cluster_id: str
    controller_id: int
    brokers: tuple[DescribeClusterBroker, ...]


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in topic.assignments.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _failure(code: int, message: str | None = None) -> KafkaError | None:
    return broker_error(code, message) if code != ErrorCode.NONE else None
