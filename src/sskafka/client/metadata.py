"""A client's metadata: immutable views of brokers, topics and partitions, built from Metadata responses.

A partition view carries its leader epoch. A response from a lagging broker must not replace newer metadata, so `merged`
keeps the partition with the higher leader epoch as long as the topic id is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sskafka.client.connection import Address
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID, TopicPartition, Uuid
from sskafka.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

NO_LEADER = -1


class BrokerView(NamedTuple):
    node_id: int
    address: Address
    rack: str | None


class PartitionView(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    error_code: int


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: Uuid
    is_internal: bool
    error_code: int
    partitions: Mapping[int, PartitionView]


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    cluster_id: str | None = None
    controller_id: int = NO_LEADER
    brokers: Mapping[int, BrokerView] = field(default_factory=dict)
    topics: Mapping[str, TopicView] = field(default_factory=dict)

    def partition(self, topic_partition: TopicPartition) -> PartitionView | None:
        topic = self.topics.get(topic_partition.topic)
        return topic.partitions.get(topic_partition.partition) if topic else None

    def topic_name(self, topic_id: Uuid) -> str | None:
        return next((topic.name for topic in self.topics.values() if topic.topic_id == topic_id), None)


def view_of(response: MetadataResponse) -> MetadataSnapshot:
    return MetadataSnapshot(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers={
            broker.node_id: BrokerView(broker.node_id, Address(broker.host, broker.port), broker.rack)
            for broker in response.brokers
        },
        topics={topic.name: _topic_view(topic) for topic in response.topics if topic.name is not None},
    )


def merged(old: MetadataSnapshot, new: MetadataSnapshot, requested: set[str] | None) -> MetadataSnapshot:
    """Return `new`, with topics that were not requested taken from `old`; `requested` is None for all topics."""
    topics = {} if requested is None else {name: topic for name, topic in old.topics.items() if name not in requested}
    for name, topic in new.topics.items():
        known = old.topics.get(name)
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            topics.pop(name, None)
        else:
            topics[name] = _newest(known, topic) if known else topic
    return replace(new, topics=topics)


def _newest(old: TopicView, new: TopicView) -> TopicView:
    if old.topic_id != new.topic_id or new.topic_id == ZERO_UUID:  # a recreated topic starts with new epochs
        return new
    partitions = dict(new.partitions)
    for number, known in old.partitions.items():
        received = partitions.get(number)
        if received is not None and received.leader_epoch < known.leader_epoch:
            partitions[number] = known
    return replace(new, partitions=partitions)


def _topic_view(topic: MetadataResponseTopic) -> TopicView:
    return TopicView(
        name=topic.name or "",
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        error_code=topic.error_code,
        partitions={partition.partition_index: _partition_view(partition) for partition in topic.partitions},
    )


def _partition_view(partition: MetadataResponsePartition) -> PartitionView:
    return PartitionView(
        partition=partition.partition_index,
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline_replicas=tuple(partition.offline_replicas),
        error_code=partition.error_code,
    )
