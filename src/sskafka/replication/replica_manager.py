"""The replicas on this broker: found by topic name or id, and kept in step with the cluster's metadata.

`apply` is called with every change of the metadata, on the data loop: it opens the logs of new replicas, deletes
those of deleted topics, and tells partitions of new leaders and settings.
"""

import logging
from collections.abc import Callable, Iterator

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partition_image import PartitionImage
from sskafka.metadata.records import RESOURCE_BROKER
from sskafka.model.clock import Clock
from sskafka.model.counters import TopicCounters
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.model.settings import Settings
from sskafka.partition.leadership import Leadership
from sskafka.replication.errors import ReplicaOfflineError, UnknownPartitionError, UnknownTopicIdError
from sskafka.replication.partition import Partition
from sskafka.storage.errors import StorageError
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager

log = logging.getLogger(__name__)


class TopicReplicas:
    """The replicas of one topic on this broker; a failed one has an error in place of its partition."""

    __slots__ = ("counters", "name", "offline", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid) -> None:
        self.name = name
        self.topic_id = topic_id
        self.counters = TopicCounters()
        self.partitions: dict[int, Partition] = {}
        self.offline: dict[int, StorageError] = {}


class ReplicaManager:
    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        settings: Settings,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._call_soon = call_soon
        self._topics: dict[str | Uuid, TopicReplicas] = {}  # each topic twice: by name and by id
        self._to_wake: dict[Partition, None] = {}

    # -- what the servers ask

    def find(self, topic: str | Uuid, index: int) -> Partition:
        """The replica on this broker; raises what the client should hear when there is none."""
        try:
            return self._topics[topic].partitions[index]
        except KeyError:
            raise self._why_not(topic, index) from None

    def counters_of(self, topic: str | Uuid) -> TopicCounters | None:
        replicas = self._topics.get(topic)
        return replicas.counters if replicas else None

    def topics(self) -> Iterator[TopicReplicas]:
        return (replicas for key, replicas in self._topics.items() if isinstance(key, str))

    def partitions(self) -> Iterator[Partition]:
        for replicas in self.topics():
            yield from replicas.partitions.values()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {partition.topic_partition: partition.high_watermark for partition in self.partitions()}

    def _why_not(self, topic: str | Uuid, index: int) -> Exception:
        replicas = self._topics.get(topic)
        if replicas is None:
            if isinstance(topic, bytes):
                return UnknownTopicIdError("no topic here has that id")
            return UnknownPartitionError(f"topic {topic!r} is not on this broker")
        if index in replicas.offline:
            return ReplicaOfflineError(str(replicas.offline[index]))
        return UnknownPartitionError(f"partition {replicas.name}-{index} is not on this broker")

    # -- waking parked fetches

    def _wake_soon(self, partition: Partition) -> None:
        """Once a turn of the loop, so that a fetch answers with all that the turn appended."""
        if not self._to_wake:
            self._call_soon(self._wake)
        self._to_wake[partition] = None

    def _wake(self) -> None:
        partitions, self._to_wake = self._to_wake, {}
        for partition in partitions:
            for waiter in list(partition.data_waiters):
                waiter.data_arrived()

    # -- what the metadata says

    def apply(self, delta: MetadataDelta, image: ClusterImage) -> None:
        for topic in delta.topics_deleted.values():
            self._delete_topic(topic)
        for topic_id, index in delta.changed_partitions():
            self._apply_partition(image, image.topics_by_id[topic_id], index)
        if delta.configs_changed:
            self._apply_configs(delta, image)

    def _apply_partition(self, image: ClusterImage, topic: TopicImage, index: int) -> None:
        state = topic.partitions[index]
        if self._broker_id not in state.replicas:
            return
        replicas = self._topics.get(topic.topic_id) or self._add_topic(topic)
        partition = replicas.partitions.get(index)
        if partition is not None:
            partition.change_leadership(_leadership(state))
            return
        try:
            replicas.partitions[index] = self._open(image, replicas, index, state)
            replicas.offline.pop(index, None)
        except StorageError as error:
            log.error("replica %s-%d is offline: %s", topic.name, index, error)
            replicas.offline[index] = error

    def _add_topic(self, topic: TopicImage) -> TopicReplicas:
        replicas = TopicReplicas(topic.name, topic.topic_id)
        self._topics[topic.name] = self._topics[topic.topic_id] = replicas
        return replicas

    def _open(self, image: ClusterImage, topic: TopicReplicas, index: int, state: PartitionImage) -> Partition:
        topic_partition = TopicPartition(topic.name, index)
        config, min_insync_replicas = self._configs(image, topic.name)
        partition_log = self._logs.open_log(topic_partition, topic.topic_id, config, self._clock.now_ms())
        return Partition(
            topic_partition,
            topic.topic_id,
            partition_log,
            _leadership(state),
            self._broker_id,
            self._logs.high_watermark(topic_partition),
            min_insync_replicas,
            topic.counters,
            self._wake_soon,
        )

    def _delete_topic(self, topic: TopicImage) -> None:
        replicas = self._topics.pop(topic.topic_id, None)
        if replicas is None:
            return
        del self._topics[topic.name]
        for partition in replicas.partitions.values():
            self._logs.delete_log(partition.topic_partition, self._clock.now_ms())
            partition.release_all(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _apply_configs(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """A changed default of a broker may change every topic."""
        all_topics = any(resource.type == RESOURCE_BROKER for resource in delta.configs_changed)
        changed = {resource.name for resource in delta.configs_changed}
        for replicas in self.topics():
            if all_topics or replicas.name in changed:
                config, min_insync_replicas = self._configs(image, replicas.name)
                for partition in replicas.partitions.values():
                    partition.log.configure(config)
                    partition.min_insync_replicas = min_insync_replicas

    def _configs(self, image: ClusterImage, topic: str) -> tuple[LogConfig, int]:
        config = effective_settings(self._settings, image).topic_config(image.topic_configs(topic))
        return LogConfig.from_settings(config), config["min.insync.replicas"]


def _leadership(state: PartitionImage) -> Leadership:
    return Leadership(state.leader, state.leader_epoch, state.partition_epoch, state.replicas, state.isr)
