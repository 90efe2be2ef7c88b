"""Administration of replicas and leaders: reassignments, leader elections, and unregistering brokers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from sskafka.client.cluster import Cluster
from sskafka.client.errors import broker_error, raise_for
from sskafka.client.offsets import by_topic
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from sskafka.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from sskafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from sskafka.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from sskafka.wire.schema import Message

_PREFERRED, _UNCLEAN = 0, 1


class Reassignment(NamedTuple):
    """An ongoing reassignment."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def alter_reassignments(
    cluster: Cluster, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, KafkaError | None]:
    """Start moving partitions to these replicas, preferred leader first; None cancels an ongoing reassignment."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=cluster.config.request_timeout_ms,
        topics=[
            ReassignableTopic(name, [_reassignable(partition, wanted[partition]) for partition in partitions])
            for name, partitions in by_topic(wanted).items()
        ],
    )
    return {
        TopicPartition(topic.name, answer.partition_index): _failure(answer.error_code, answer.error_message)
        for topic in (await _at_controller(cluster, request, AlterPartitionReassignmentsResponse)).responses
        for answer in topic.partitions
    }


async def list_reassignments(cluster: Cluster) -> dict[TopicPartition, Reassignment]:
    request = ListPartitionReassignmentsRequest(timeout_ms=cluster.config.request_timeout_ms, topics=None)
    return {
        TopicPartition(topic.name, move.partition_index): Reassignment(
            tuple(move.replicas), tuple(move.adding_replicas), tuple(move.removing_replicas)
        )
        for topic in (await _at_controller(cluster, request, ListPartitionReassignmentsResponse)).topics
        for move in topic.partitions
    }


async def elect_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None, *, unclean: bool = False
) -> dict[TopicPartition, KafkaError | None]:
    """Elect the preferred leaders of the partitions (None: all). `unclean` allows any live replica to become leader."""
    chosen = None if partitions is None else by_topic(partitions)
    request = ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED,
        topic_partitions=None
        if chosen is None
        else [TopicPartitions(name, [item.partition for item in items]) for name, items in chosen.items()],
        timeout_ms=cluster.config.request_timeout_ms,
    )
    return {
        TopicPartition(topic.topic, answer.partition_id): _failure(answer.error_code, answer.error_message)
        for topic in (await _at_controller(cluster, request, ElectLeadersResponse)).replica_election_results
        for answer in topic.partition_result
    }


async def unregister_broker(cluster: Cluster, broker_id: int) -> None:
    """Remove the registration of a broker that will not return."""
    await _at_controller(cluster, UnregisterBrokerRequest(broker_id), UnregisterBrokerResponse)


class _Response(Message, Protocol):
    error_code: int


R = TypeVar("R", bound=_Response)


async def _at_controller(cluster: Cluster, request: Message, response_class: type[R]) -> R:
    async def attempt() -> R:
        connection = await cluster.controller_connection()
        response = await connection.request(request, response_class)
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            await cluster.refresh()
        raise_for(response.error_code, getattr(response, "error_message", None))
        return response

    return await cluster.retrying(attempt)


def _reassignable(partition: TopicPartition, replicas: Sequence[int] | None) -> ReassignablePartition:
    return ReassignablePartition(partition.partition, None if replicas is None else list(replicas))


def _failure(code: int, message: str | None) -> KafkaError | None:
    return broker_error(code, message) if code != ErrorCode.NONE else None
