"""Choose the broker that each partition is read from.

This is the leader, unless the leader named a preferred read replica for `client.rack`, or the partition may be read
from any replica. In the latter case a random in-sync replica that has not failed recently is chosen, and kept while it
stays in sync and healthy. All replicas serve records only up to the high watermark, so every choice yields the same
records.
"""

from collections.abc import Mapping
from typing import TypeAlias

from sskafka.client.backoff import Randomness
from sskafka.client.cluster import Cluster
from sskafka.client.fetcher import NO_REPLICA, Position
from sskafka.client.metadata import PartitionView
from sskafka.model.ids import TopicPartition

Sources: TypeAlias = dict[int, dict[TopicPartition, Position]]


class FetchSources:
    def __init__(self, cluster: Cluster, randomness: Randomness) -> None:
        self._cluster = cluster
        self._random = randomness
        self._refresh_requested_ms = 0.0

    async def by_broker(self, positions: Mapping[TopicPartition, Position]) -> Sources:
        """Group positions by the broker to fetch from.

        Partitions that no broker can serve now are left out, and their metadata is refreshed."""
        sources: Sources = {}
        for topic_partition, position in positions.items():
            broker = self._source(position, await self._cluster.partition(topic_partition))
            if broker is None:
                self.request_refresh(topic_partition.topic)
            else:
                sources.setdefault(broker, {})[topic_partition] = position
        return sources

    def request_refresh(self, topic: str) -> None:
        """Mark the metadata of the topic as stale, but not with every poll: at most once per `retry.backoff.ms`."""
        now_ms = self._cluster.clock.monotonic_ms()
        if now_ms - self._refresh_requested_ms >= self._cluster.config.retry_backoff_ms:
            self._refresh_requested_ms = now_ms
            self._cluster.forget(topic)

    def _source(self, position: Position, partition: PartitionView) -> int | None:
        if position.reads_any_replica and not position.must_ask_leader:
            replica = self._any_replica(position, partition)
            if replica is not None:
                return replica
        elif self._has_preferred_replica(position):
            return position.replica
        return partition.leader if partition.leader in self._cluster.view.brokers else None

    def _has_preferred_replica(self, position: Position) -> bool:
        is_valid = self._cluster.clock.monotonic_ms() < position.replica_until_ms
        return is_valid and position.replica in self._cluster.view.brokers

    def _any_replica(self, position: Position, partition: PartitionView) -> int | None:
        healthy = [replica for replica in partition.isr if self._is_healthy(replica, partition)]
        if position.replica not in healthy:
            position.replica = healthy[int(self._random.random() * len(healthy))] if healthy else NO_REPLICA
        return position.replica if healthy else None

    def _is_healthy(self, replica: int, partition: PartitionView) -> bool:
        is_online = replica in self._cluster.view.brokers and replica not in partition.offline_replicas
        return is_online and not self._cluster.has_failed_recently(replica)
