"""Assign partitions to fetch connections: `num.replica.fetchers` to each leader, opened when first needed."""

from zlib import crc32

from sskafka.model.settings import Settings
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.fetcher import FetchLimits, ReplicaFetcher
from sskafka.replication.partition import Partition
from sskafka.replication.replica_counters import ReplicaCounters
from sskafka.replication.throttle import Throttle
from sskafka.runtime.clock import Clock

Lane = tuple[int, int]
"""The leader, and the number of the connection to it."""


class Fetchers:
    def __init__(
        self,
        broker_id: int,
        settings: Settings,
        clock: Clock,
        links: ClusterLinks,
        counters: ReplicaCounters,
        throttle: Throttle,
    ) -> None:
        self._broker_id = broker_id
        self._clock = clock
        self._links = links
        self._counters = counters
        self._throttle = throttle
        self._limits = FetchLimits.from_settings(settings)
        self._lanes = settings["num.replica.fetchers"]
        self._fetchers: dict[Lane, ReplicaFetcher] = {}
        self._lane_of: dict[Partition, Lane] = {}

    def follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader in the current leader epoch."""
        lane = (partition.leadership.leader_id, self._lane_number(partition))
        if self._lane_of.get(partition, lane) != lane:
            self.remove(partition)
        self._lane_of[partition] = lane
        fetcher = self._fetchers.get(lane)
        if fetcher is None:
            fetcher = self._fetchers[lane] = self._open(lane)
        fetcher.add(partition)

    def remove(self, partition: Partition) -> None:
        lane = self._lane_of.pop(partition, None)
        if lane is None:
            return
        fetcher = self._fetchers[lane]
        fetcher.remove(partition)
        if fetcher.is_idle:
            fetcher.stop()
            del self._fetchers[lane]

    def resize(self, lanes: int) -> None:
        """Set `num.replica.fetchers` to `lanes` and move partitions to their new connections."""
        if lanes == self._lanes:
            return
        self._lanes = lanes
        for partition in list(self._lane_of):
            self.follow(partition)

    def check_throttle(self) -> None:
        """Apply a change of the throttle's rate or of its replicas."""
        for fetcher in self._fetchers.values():
            fetcher.check_throttle()

    def stop(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._fetchers.clear()
        self._lane_of.clear()

    def _open(self, lane: Lane) -> ReplicaFetcher:
        leader_id, _ = lane
        return ReplicaFetcher(
            self._broker_id, leader_id, self._links, self._clock, self._limits, self._counters, self._throttle
        )

    def _lane_number(self, partition: Partition) -> int:
        topic, index = partition.topic_partition
        return (crc32(topic.encode()) + index) % self._lanes
