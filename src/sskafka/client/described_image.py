"""Build a cluster's metadata from the Admin API of its brokers, which may be SSKafka or Apache Kafka.

The Admin API does not return everything in the metadata log; missing fields keep their defaults.
"""

from collections.abc import Callable
from typing import NamedTuple

from sskafka.client.admin import Admin
from sskafka.client.cluster import Cluster
from sskafka.client.configs import Resource, describe_configs
from sskafka.client.errors import UnsupportedApiError
from sskafka.client.metadata import PartitionView, TopicView
from sskafka.client.partition_moves import Reassignment, list_reassignments
from sskafka.client.quorum import describe_quorum
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import (
    BrokerEndpoint,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from sskafka.model.config_description import ConfigSource
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.model.listeners import PLAINTEXT, SECURITY_PROTOCOLS
from sskafka.wire.messages.describe_cluster import DescribeClusterBroker

_NO_MOVE = Reassignment((), (), ())


class DescribedCluster(NamedTuple):
    image: ClusterImage
    cluster_id: str
    controller_id: int
    controller_epoch: int


def no_configs(_: Resource) -> bool:
    return False


async def describe(cluster: Cluster, *, with_configs: Callable[[Resource], bool]) -> DescribedCluster:
    """Describe the cluster. Settings need a request for each topic and broker, so `with_configs` chooses them."""
    admin = Admin(cluster)
    described = await admin.describe_cluster()
    topics = await admin.list_topics(internal=True)
    records: list[MetadataRecord] = [_broker_record(broker) for broker in described.brokers]
    moves = await _moves(cluster)
    for topic in topics:
        records += _topic_records(topic, moves)
    broker_ids = [broker.broker_id for broker in described.brokers]
    records += await _config_records(cluster, topics, broker_ids, with_configs)
    image, delta = ClusterImage(), MetadataDelta()
    for record in records:
        image.replay(record, delta)
    controller_id, controller_epoch = await _controller(cluster, described.controller_id)
    return DescribedCluster(image, described.cluster_id, controller_id, controller_epoch)


def _broker_record(broker: DescribeClusterBroker) -> MetadataRecord:
    listener = BrokerEndpoint(PLAINTEXT, broker.host, broker.port, SECURITY_PROTOCOLS[PLAINTEXT])
    return RegisterBrokerRecord(broker.broker_id, end_points=[listener], rack=broker.rack, fenced=broker.is_fenced)


def _topic_records(topic: TopicView, moves: dict[TopicPartition, Reassignment]) -> list[MetadataRecord]:
    records: list[MetadataRecord] = [TopicRecord(topic.name, topic.topic_id)]
    for number, partition in sorted(topic.partitions.items()):
        move = moves.get(TopicPartition(topic.name, number), _NO_MOVE)
        records.append(_partition_record(topic, partition, move))
    return records


def _partition_record(topic: TopicView, partition: PartitionView, move: Reassignment) -> MetadataRecord:
    return PartitionRecord(
        partition.partition,
        topic.topic_id,
        list(partition.replicas),
        list(partition.isr),
        list(move.removing),
        list(move.adding),
        partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=0,
    )


async def _moves(cluster: Cluster) -> dict[TopicPartition, Reassignment]:
    try:
        return await list_reassignments(cluster)
    except UnsupportedApiError:
        return {}


async def _controller(cluster: Cluster, named: int) -> tuple[int, int]:
    """Return the quorum's leader and epoch. Apache Kafka's brokers name any broker as controller, because all forward
    to it."""
    try:
        found = await describe_quorum(cluster)
    except (UnsupportedApiError, KafkaError):
        return named, -1
    return found.leader_id, found.leader_epoch


async def _config_records(
    cluster: Cluster, topics: list[TopicView], broker_ids: list[int], is_wanted: Callable[[Resource], bool]
) -> list[MetadataRecord]:
    """Return the dynamic configs. Defaults and properties files are not part of the metadata."""
    sources = {Resource.topic(topic.name): ConfigSource.DYNAMIC_TOPIC_CONFIG for topic in topics}
    sources |= {Resource.broker(node_id): ConfigSource.DYNAMIC_BROKER_CONFIG for node_id in broker_ids}
    sources[Resource.broker(None)] = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    records: list[MetadataRecord] = []
    for resource, source in sources.items():
        if not is_wanted(resource):
            continue
        entries = await describe_configs(cluster, resource)
        changed = [entry for entry in entries if entry.source == source and entry.value is not None]
        records += [ConfigRecord(resource.type, resource.name, entry.name, entry.value) for entry in changed]
    return records
