"""Ask a cluster for its layout: brokers, replicas and sizes."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sskafka.client.admin import Admin
from sskafka.client.balance.layout import BrokerSite, Layout, PlacedPartition
from sskafka.client.balance.safety import StopRisk, risks_of_stopping
from sskafka.client.cluster import Cluster
from sskafka.client.cluster_status import DIRECTORIES_TIMEOUT_S, MIN_INSYNC_REPLICAS, silent_voters
from sskafka.client.configs import describe_topic_setting
from sskafka.client.errors import ClientError
from sskafka.client.metadata import NO_LEADER
from sskafka.client.quorum import describe_quorum
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition


class BrokerDirectories(NamedTuple):
    """The log directories of one broker, as the broker describes them."""

    replica_bytes: Mapping[TopicPartition, int]
    is_cordoned: bool
    """Whether all directories are cordoned."""


async def read_layout(cluster: Cluster) -> Layout:
    """Return where the replicas of all topics are. A broker that does not answer counts as one that is not live."""
    description = await Admin(cluster).describe_cluster(include_fenced=True)
    view = await cluster.retrying(lambda: cluster.refresh(None))
    live = [broker.broker_id for broker in description.brokers if broker.broker_id in view.brokers]
    directories = await read_directories(cluster, live)
    brokers = {
        broker.broker_id: BrokerSite(
            broker.broker_id,
            broker.rack,
            broker.broker_id in directories,
            broker.broker_id in directories and directories[broker.broker_id].is_cordoned,
        )
        for broker in description.brokers
    }
    partitions = [
        PlacedPartition(
            TopicPartition(topic.name, number),
            partition.replicas,
            partition.isr,
            partition.leader if partition.leader in view.brokers else NO_LEADER,
            _size(TopicPartition(topic.name, number), directories.values()),
        )
        for topic in view.topics.values()
        for number, partition in sorted(topic.partitions.items())
        if partition.replicas
    ]
    return Layout(brokers, sorted(partitions))


def _size(partition: TopicPartition, directories: Iterable[BrokerDirectories]) -> int:
    return max((one.replica_bytes.get(partition, 0) for one in directories), default=0)


async def read_directories(cluster: Cluster, node_ids: Iterable[int]) -> dict[int, BrokerDirectories]:
    """Return the log directories of those brokers that answer in time."""
    wanted = list(node_ids)
    found = await asyncio.gather(*(_read_directories(cluster, node_id) for node_id in wanted))
    return {node_id: one for node_id, one in zip(wanted, found, strict=True) if one is not None}


async def _read_directories(cluster: Cluster, node_id: int) -> BrokerDirectories | None:
    try:
        async with asyncio.timeout(DIRECTORIES_TIMEOUT_S):
            results = await Admin(cluster).describe_log_dirs(node_id)
    except (KafkaError, ClientError, TimeoutError):
        return None
    sizes = {
        TopicPartition(topic.name, partition.partition_index): partition.partition_size
        for result in results
        for topic in result.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }
    return BrokerDirectories(sizes, bool(results) and all(result.is_cordoned for result in results))


async def read_stop_risks(cluster: Cluster, node_id: int) -> list[StopRisk]:
    """Return what clients would lose if the broker stopped now; raise KafkaError if there is no such broker."""
    layout = await read_layout(cluster)
    if node_id not in layout.brokers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {node_id}")
    topics = {one.partition.topic for one in layout.partitions}
    min_isr = await describe_topic_setting(cluster, topics, MIN_INSYNC_REPLICAS)
    quorum = await describe_quorum(cluster)
    silent = frozenset(silent_voters(quorum, cluster.clock.now_ms()))
    needed = {topic: int(text) for topic, text in min_isr.items()}
    return list(risks_of_stopping(layout, node_id, needed, quorum, silent))
