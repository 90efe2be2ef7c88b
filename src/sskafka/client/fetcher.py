"""Send one Fetch request for a set of positions and return the response per partition. Keeps no state."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.errors import raise_for
from sskafka.client.offsets import by_topic, leader_epoch_of
from sskafka.model.ids import TopicPartition
from sskafka.model.values import structure
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

NO_EPOCH = -1
NO_REPLICA = -1
REPLICA_TIMEOUT_MS = 5_000
_LAST_FETCHED_EPOCH_FROM = 12


@structure
class Position:
    """Next offset to read of a partition, the replica to read from, and the log's offsets as of the last fetch."""

    offset: int
    reads_any_replica: bool = False
    must_ask_leader: bool = False
    """Set after a follower denied that the offset exists: it may lag, so only the leader knows."""
    last_epoch: int = NO_EPOCH
    """Leader epoch of the last batch read. With it, the leader detects that its log has diverged."""
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    replica: int = NO_REPLICA
    """Preferred read replica named by the leader (`client.rack`), or the in-sync replica chosen at random."""
    replica_until_ms: float = 0


class FetchAnswer(NamedTuple):
    partition: TopicPartition
    fetch_offset: int
    data: PartitionData
    is_from_leader: bool


async def fetch(
    cluster: Cluster, config: ConsumerConfig, broker: int, positions: Mapping[TopicPartition, Position]
) -> list[FetchAnswer]:
    """Fetch from one broker; the broker waits up to `fetch.max.wait.ms` until it has `fetch.min.bytes`.

    If all partitions can be read from other replicas too, the request timeout is shorter, so that failover is fast."""
    fetch_offsets = {partition: position.offset for partition, position in positions.items()}
    connection = await cluster.connection_to(broker)
    version = connection.version_for(FetchRequest)
    has_alternatives = all(position.replica == broker for position in positions.values())
    replica_timeout_ms = min(REPLICA_TIMEOUT_MS, cluster.config.request_timeout_ms)
    request_timeout_ms = replica_timeout_ms if has_alternatives else cluster.config.request_timeout_ms
    timeout_ms = config.fetch_max_wait_ms + request_timeout_ms
    request = _request(cluster, config, positions, version)
    led = {partition for partition in positions if _is_leader(cluster, broker, partition)}
    response = await connection.request(request, FetchResponse, version=version, timeout_ms=timeout_ms)
    raise_for(response.error_code, f"fetch from broker {broker}")
    return [
        FetchAnswer(partition, fetch_offsets[partition], data, partition in led)
        for partition, data in _answers(cluster, response)
        if partition in fetch_offsets
    ]


def _is_leader(cluster: Cluster, broker: int, partition: TopicPartition) -> bool:
    """Return whether the broker leads the partition in the epoch that the request names."""
    view = cluster.view.partition(partition)
    return view is not None and view.leader == broker


def _answers(cluster: Cluster, response: FetchResponse) -> Iterator[tuple[TopicPartition, PartitionData]]:
    for topic in response.responses:
        name = topic.topic or cluster.view.topic_name(topic.topic_id)
        if name is not None:
            yield from ((TopicPartition(name, data.partition_index), data) for data in topic.partitions)


def _request(
    cluster: Cluster, config: ConsumerConfig, positions: Mapping[TopicPartition, Position], version: int
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=config.fetch_max_bytes,
        isolation_level=config.isolation,
        rack_id=config.client_rack,
        topics=[
            FetchTopic(
                topic=name,
                topic_id=cluster.view.topics[name].topic_id,
                partitions=[
                    FetchPartition(
                        partition=partition.partition,
                        current_leader_epoch=leader_epoch_of(cluster, partition),
                        fetch_offset=positions[partition].offset,
                        last_fetched_epoch=_last_epoch(positions[partition], version),
                        partition_max_bytes=config.max_partition_fetch_bytes,
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in by_topic(positions).items()
        ],
    )


def _last_epoch(position: Position, version: int) -> int:
    return position.last_epoch if version >= _LAST_FETCHED_EPOCH_FROM else NO_EPOCH
