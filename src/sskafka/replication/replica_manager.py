"""The replicas on this broker: found by topic name or id, and kept in step with the cluster's metadata.

`apply` is called with every metadata change, on the data loop: it opens the logs of new replicas, deletes those that
this broker no longer has, and passes new leaders, ISRs and settings to the partitions. A large change is applied in
turns of a few milliseconds; `when_applied` reports its end.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import RESOURCE_BROKER
from sskafka.model.counters import Sample, TopicCounters
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.model.settings import Settings
from sskafka.partition.in_sync_replicas import IsrChange
from sskafka.partition.leader_state import Leadership
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.errors import (
    NotLeaderOrFollowerError,
    ReplicaOfflineError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from sskafka.replication.fetchers import Fetchers
from sskafka.replication.isr_changes import IsrChanges
from sskafka.replication.partition import DataWaiter, Partition
from sskafka.replication.replica_counters import ReplicaCounters, replica_gauges
from sskafka.replication.throttle import Throttle
from sskafka.replication.topic_settings import TopicSettings
from sskafka.runtime.clock import Clock
from sskafka.runtime.work_queue import WorkQueue
from sskafka.storage.errors import StorageError, TemporaryStorageError
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.log_manager import LogManager, LogToRecover

log = logging.getLogger(__name__)

CHECKED_PER_TURN = 1_000
"""Partitions whose followers are checked in one turn of the loop, which takes 2 ms."""
CONFIGURED_AT_ONCE = 100
"""Partitions that get new settings at once, which takes 3 ms if each is of another topic."""
HIGH_WATERMARK_DELAY_S: Final = 0.005
"""A follower receives a new high watermark with the next records, or after this time if there are none."""


class TopicReplicas:
    """The replicas of one topic on this broker. A failed replica has an error in place of its partition."""

    __slots__ = ("counters", "name", "offline", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid) -> None:
        self.name = name
        self.topic_id = topic_id
        self.counters = TopicCounters()
        self.partitions: dict[int, Partition] = {}
        self.offline: dict[int, StorageError] = {}


class ReplicaManager:
    """`links`: to the other brokers. A broker without links can only have single-replica partitions."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        settings: Settings,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], object],
        links: ClusterLinks | None = None,
        call_soon_threadsafe: Callable[[Callable[[], None]], object] | None = None,
        call_at_end: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """`call_soon_threadsafe`: like `call_soon`, from any thread, because a log directory may fail in one.

        `call_at_end`: like `call_soon`, at the end of the current turn if possible (runtime/selector.py)."""
        self.broker_id = broker_id
        self.lag_max_ms = settings["replica.lag.time.max.ms"]
        self.counters = ReplicaCounters()
        self.monotonic_ms = clock.monotonic_ms
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._call_soon = call_soon
        self._call_soon_threadsafe = call_soon_threadsafe or call_soon
        self._call_at_end = call_at_end or call_soon
        self._recovers_in_threads = call_soon_threadsafe is not None
        self.on_placed: Callable[[Partition], None] | None = None
        """Called for every replica that was opened, and for every replica whose directory has failed."""
        self.on_unreadable: Callable[[Partition, int], None] | None = None
        """Called with a partition and an offset at which its log could not be read."""
        self.on_retried: Callable[[MetadataDelta, ClusterImage], None] | None = None
        """Called after each attempt to open replicas late, as if their partitions had changed in the metadata."""
        self._links = links
        samples, window_s = settings["replication.quota.window.num"], settings["replication.quota.window.size.seconds"]
        self.sending = Throttle(clock.monotonic_ms, samples, window_s * 1000)
        """Limits what is sent to followers that are not in sync."""
        self._fetching = Throttle(clock.monotonic_ms, samples, window_s * 1000)
        self.moving = Throttle(
            clock.monotonic_ms,
            settings["alter.log.dirs.replication.quota.window.num"],
            settings["alter.log.dirs.replication.quota.window.size.seconds"] * 1000,
        )
        """Limits moves between log directories of this broker."""
        self._limit_rates(settings)
        self._logs.cordon(settings["cordoned.log.dirs"])
        self._verifies_transactions = settings["transaction.partition.verification.enable"]
        self._fetchers = Fetchers(broker_id, settings, clock, links, self.counters, self._fetching) if links else None
        self._isr_changes = IsrChanges(broker_id, links) if links else None
        self._image = ClusterImage()
        self._topics: dict[str | Uuid, TopicReplicas] = {}  # each topic twice: by name and by id
        self._to_wake: dict[Partition, None] = {}
        self._followers_to_wake: dict[Partition, int] = {}  # and their log end offset at that time
        self._changes = WorkQueue(clock, call_soon)
        self._last_settings: TopicSettings | None = None
        self._is_stopped = False
        for directory in logs.directories:
            directory.health.on_failure = self._directory_failed
        if links is not None:
            self._check_lag_later(links)

    def stop(self) -> None:
        """Stop fetching, and stop sending requests to the controller."""
        self._is_stopped = True
        if self._fetchers is not None:
            self._fetchers.stop()
        if self._isr_changes is not None:
            self._isr_changes.stop()

    # -- for the servers

    def find(self, topic: str | Uuid, index: int) -> Partition:
        """Return the replica on this broker. Raise the error for the client if there is none."""
        try:
            return self._topics[topic].partitions[index]
        except KeyError:
            raise self.absence_error(topic, index) from None

    def maybe_find(self, topic: str | Uuid, index: int) -> Partition | None:
        """Return the replica on this broker, or None; `absence_error` says why there is none."""
        try:
            return self._topics[topic].partitions[index]
        except KeyError:
            return None

    def name_of(self, topic: str | Uuid) -> str | None:
        """Return the name of a topic, or None for an id that the metadata does not have."""
        if isinstance(topic, str):
            return topic
        found = self._image.topics_by_id.get(topic)
        return found.name if found else None

    def counters_of(self, topic: str | Uuid) -> TopicCounters | None:
        replicas = self._topics.get(topic)
        return replicas.counters if replicas else None

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions in the metadata, 0 for an unknown topic."""
        found = self._image.topics_by_name.get(topic)
        return len(found.partitions) if found else 0

    def leadership_of(self, topic: str | Uuid, index: int) -> Leadership | None:
        """Return the leadership in the metadata, wherever the replicas are."""
        state = self._state_of(topic, index)
        return _leadership(state) if state is not None else None

    def topics(self) -> Iterator[TopicReplicas]:
        for key, replicas in self._topics.items():
            if isinstance(key, str):
                yield replicas

    def partitions(self) -> Iterator[Partition]:
        for replicas in self.topics():
            yield from replicas.partitions.values()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {partition.topic_partition: partition.high_watermark for partition in self.partitions()}

    def samples(self) -> Iterator[Sample]:
        yield from self.counters.samples()
        yield from replica_gauges(self.partitions(), sum(len(topic.offline) for topic in self.topics()))

    def rack_of(self, broker_id: int) -> str | None:
        broker = self._image.brokers.get(broker_id)
        return broker.rack if broker else None

    def _state_of(self, topic: str | Uuid, index: int) -> PartitionImage | None:
        if isinstance(topic, str):
            return self._image.partition(topic, index)
        found = self._image.topics_by_id.get(topic)
        return found.partitions.get(index) if found else None

    def absence_error(self, topic: str | Uuid, index: int) -> Exception:
        """Return the error for the client: the replica is offline, on other brokers, or does not exist."""
        replicas = self._topics.get(topic)
        if replicas is not None and index in replicas.offline:
            return ReplicaOfflineError(str(replicas.offline[index]))
        state = self._state_of(topic, index)
        if state is not None:
            return NotLeaderOrFollowerError(
                f"broker {state.leader} leads partition {index}, this broker has no replica"
            )
        if isinstance(topic, bytes) and topic not in self._image.topics_by_id:
            return UnknownTopicIdError("no topic has that id")
        return UnknownTopicOrPartitionError(f"unknown partition {index} of {replicas.name if replicas else topic!r}")

    def unreadable(self, topic: str | Uuid, index: int, offset: int) -> None:
        """Note that a log is damaged at this offset."""
        partition = self.maybe_find(topic, index)
        if partition is not None and self.on_unreadable is not None:
            self.on_unreadable(partition, offset)

    # -- for partitions (PartitionHost)

    def broker_epoch(self) -> int:
        return self._links.broker_epoch() if self._links is not None else -1

    def is_in_service(self, image: ClusterImage | None = None) -> bool:
        """Return whether the metadata, or an `image` of it, has this process registered and unfenced.

        Metadata from before the start of this process does not count."""
        if self._links is None:
            return True
        known = self._image if image is None else image
        broker = known.brokers.get(self.broker_id)
        return broker is not None and broker.is_active and broker.epoch == self.broker_epoch()

    def registered_epoch(self, broker_id: int) -> int | None:
        """Return the registered broker epoch, or None if the broker may not join the ISR: fenced, shutting down or
        unknown."""
        broker = self._image.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.is_active else None

    def ask_for_isr(self, partition: Partition, change: IsrChange) -> None:
        assert self._isr_changes is not None, "a partition with followers needs links to the cluster"
        self._isr_changes.ask(partition, change)

    def wake_soon(self, partition: Partition) -> None:
        """Wake readers once in each turn of the loop, so that a fetch returns everything that the turn appended."""
        if not self._to_wake:
            self._call_at_end(self._wake)
        self._to_wake[partition] = None

    def _wake(self) -> None:
        partitions, self._to_wake = self._to_wake, {}
        _notify(waiter for partition in partitions for waiter in [*partition.follower_waiters, *partition.data_waiters])

    def wake_followers_later(self, partition: Partition) -> None:
        assert self._links is not None
        if not self._followers_to_wake:
            self._links.call_later(HIGH_WATERMARK_DELAY_S, self._wake_followers)
        self._followers_to_wake.setdefault(partition, partition.log_end_offset)

    def _wake_followers(self) -> None:
        """Wake the followers of quiet partitions. Those of the others received the high watermark with new records, and
        a response without records would make the next records wait for their next fetch."""
        noted, self._followers_to_wake = self._followers_to_wake, {}
        quiet = []
        for partition, end_offset in noted.items():  # in a fixed order: simulations repeat their runs
            if partition.log_end_offset == end_offset:
                quiet.append(partition)
            else:
                self.wake_followers_later(partition)
        _notify(waiter for partition in quiet for waiter in list(partition.follower_waiters))

    # -- lagging followers

    def _check_lag_later(self, links: ClusterLinks) -> None:
        links.call_later(self.lag_max_ms / 2000, lambda: self._check_lag(links))

    def _check_lag(self, links: ClusterLinks) -> None:
        self._check_lag_of(list(self.partitions()), links)

    def _check_lag_of(self, partitions: list[Partition], links: ClusterLinks) -> None:
        """Check as many partitions as fit into a turn of the loop, and the others in later turns."""
        if self._is_stopped:
            return
        for partition in partitions[:CHECKED_PER_TURN]:
            if self._has(partition):
                partition.check_lag()
        left = partitions[CHECKED_PER_TURN:]
        if left:
            links.call_later(0, lambda: self._check_lag_of(left, links))
        else:
            self._check_lag_later(links)

    def _has(self, partition: Partition) -> bool:
        topic, index = partition.topic_partition
        replicas = self._topics.get(topic)
        return replicas is not None and replicas.partitions.get(index) is partition

    # -- metadata

    def apply(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Apply a metadata change. What does not fit into one turn of the loop is done in the following turns.

        Settings come first: once min.insync.replicas is raised, a smaller ISR must not let the high watermark advance,
        because the controller may then elect a replica that has left the ISR (eligible leader replicas)."""
        self._image = image
        put = self._changes.put
        for topic in delta.topics_deleted.values():
            self._delete_topic(topic)
        if delta.configs_changed:
            put(("configs", image.next_offset), partial(self._apply_configs, delta, image))
        for topic_id, index in delta.changed_partitions():
            put((topic_id, index), partial(self._apply_partition, image, topic_id, index))
        if delta.brokers_changed:
            put("brokers", self._apply_brokers)
        self._maybe_recover(delta, image)
        self._changes.run()

    def _maybe_recover(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """After an unclean shutdown recover the logs in threads first. The changes wait for that."""
        if not self._recovers_in_threads or not self._logs.has_logs_to_recover:
            return
        wanted = list(self._to_recover(delta, image))
        if not wanted:
            return
        threads: int = effective_settings(self._settings, image)["num.recovery.threads.per.data.dir"]
        self._changes.pause()
        self._logs.recover_in_threads(wanted, self._clock.now_ms(), threads, self._logs_recovered)

    def _to_recover(self, delta: MetadataDelta, image: ClusterImage) -> Iterator[LogToRecover]:
        for topic_id, index in delta.changed_partitions():
            topic = image.topics_by_id[topic_id]
            topic_partition = TopicPartition(topic.name, index)
            is_here = self.broker_id in topic.partitions[index].replicas
            if is_here and self._logs.needs_recovery(topic_partition):
                yield LogToRecover(topic_partition, topic_id, self._settings_of(image, topic.name).log_config)

    def _logs_recovered(self) -> None:
        self._call_soon_threadsafe(self._recovered)

    def _recovered(self) -> None:
        self._changes.when_done(self._logs.end_recovery)
        self._changes.resume()

    def when_applied(self, callback: Callable[[], None]) -> None:
        """Call `callback` when all metadata passed so far has been applied."""
        self._changes.when_done(callback)

    def _directory_failed(self, directory: LogDirHealth) -> None:
        """Take the directory offline soon, because the caller is in the middle of an operation, perhaps in a thread."""
        self._call_soon_threadsafe(lambda: self._take_offline(directory))

    def _take_offline(self, directory: LogDirHealth) -> None:
        """Take the directory's replicas offline: they can neither lead nor follow."""
        for replicas in self.topics():
            for index, partition in list(replicas.partitions.items()):
                if partition.log_directory is directory:
                    replicas.offline[index] = directory.failure or StorageError("the log directory has failed")
                    self._drop(replicas, index, ErrorCode.KAFKA_STORAGE_ERROR)
                    self._placed(partition)

    def _apply_partition(self, image: ClusterImage, topic_id: Uuid, index: int) -> None:
        topic = image.topics_by_id[topic_id]
        state = topic.partitions[index]
        replicas = self._topics.get(topic_id)
        if self.broker_id not in state.replicas:
            if replicas is not None:
                self._maybe_remove(replicas, index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        replicas = replicas or self._add_topic(topic)
        partition = replicas.partitions.get(index)
        if partition is None:
            self._maybe_open(image, replicas, index, state)
        elif partition.change_leadership(_leadership(state)):
            self._follow(partition)

    def _maybe_open(self, image: ClusterImage, replicas: TopicReplicas, index: int, state: PartitionImage) -> None:
        try:
            partition = self._open(image, replicas, index, state)
        except StorageError as error:
            if index not in replicas.offline:
                log.error("replica %s-%d is offline: %s", replicas.name, index, error)
            replicas.offline[index] = error
            return
        replicas.partitions[index] = partition
        replicas.offline.pop(index, None)
        self._placed(partition)
        self._follow(partition)

    def retry_opening(self) -> None:
        """Try again to open replicas that could not be opened because something was lacking for a while."""
        image, retried = self._image, MetadataDelta()
        for replicas in self.topics():
            for index, error in replicas.offline.items():
                if isinstance(error, TemporaryStorageError) and replicas.topic_id in image.topics_by_id:
                    work = partial(self._apply_partition, image, replicas.topic_id, index)
                    self._changes.put((replicas.topic_id, index), work)
                    retried.partition_changed(replicas.topic_id, index)
        self._changes.run()
        told = self.on_retried
        if told is not None and retried.partitions_changed:
            self._changes.when_done(lambda: told(retried, image))

    def _open(self, image: ClusterImage, topic: TopicReplicas, index: int, state: PartitionImage) -> Partition:
        topic_partition = TopicPartition(topic.name, index)
        settings = self._settings_of(image, topic.name)
        partition_log = self._logs.open_log(
            topic_partition,
            topic.topic_id,
            settings.log_config,
            self._clock.now_ms(),
            must_exist=not self.is_in_service() and not self._is_online(state.directory_of(self.broker_id)),
        )
        partition_log.log_directory.check_online()
        partition = Partition(
            topic_partition,
            topic.topic_id,
            partition_log,
            _leadership(state),
            self._logs.high_watermark(topic_partition),
            settings.min_insync_replicas,
            topic.counters,
            self,
        )
        partition.throttled = settings.throttled.sides_of(index, self.broker_id)
        partition_log.producers.verifies_transactions = self._verifies_transactions
        return partition

    def _is_online(self, directory_id: Uuid) -> bool:
        return any(
            directory.directory_id == directory_id and directory.is_online for directory in self._logs.directories
        )

    def _follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader in the new leader epoch, or stop fetching."""
        if self._fetchers is None:
            return
        if partition.is_leader or partition.leadership.leader_id < 0:
            self._fetchers.remove(partition)
        else:
            self._fetchers.follow(partition)

    def _placed(self, partition: Partition) -> None:
        if self.on_placed is not None:
            self.on_placed(partition)

    def known_directory_of(self, topic_id: Uuid, index: int) -> Uuid | None:
        """Return the directory of this broker's replica in the metadata."""
        state = self._state_of(topic_id, index)
        return None if state is None or self.broker_id not in state.replicas else state.directory_of(self.broker_id)

    def _add_topic(self, topic: TopicImage) -> TopicReplicas:
        replicas = TopicReplicas(topic.name, topic.topic_id)
        self._topics[topic.name] = self._topics[topic.topic_id] = replicas
        return replicas

    def _delete_topic(self, topic: TopicImage) -> None:
        """Delete the topic's partitions one by one, before new ones of the same name are opened."""
        for index in topic.partitions:
            self._changes.put(("deleted", topic.topic_id, index), partial(self._delete, topic.topic_id, index))
        self._changes.put(("deleted", topic.topic_id), partial(self._forget_topic, topic.topic_id))

    def _delete(self, topic_id: Uuid, index: int) -> None:
        replicas = self._topics.get(topic_id)
        if replicas is not None:
            self._maybe_remove(replicas, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _forget_topic(self, topic_id: Uuid) -> None:
        replicas = self._topics.pop(topic_id, None)
        if replicas is not None:
            del self._topics[replicas.name]

    def _maybe_remove(self, replicas: TopicReplicas, index: int, error: ErrorCode) -> None:
        if index in replicas.partitions:
            self._remove_replica(replicas, index, error)
        elif replicas.offline.pop(index, None) is not None:
            self._logs.forget_offline(TopicPartition(replicas.name, index))

    def _remove_replica(self, replicas: TopicReplicas, index: int, error: ErrorCode) -> None:
        topic_partition = replicas.partitions[index].topic_partition
        self._drop(replicas, index, error)
        try:
            self._logs.delete_log(topic_partition, self._clock.now_ms())
        except StorageError as failure:
            log.error("the log of %s could not be deleted: %s", topic_partition, failure)

    def _drop(self, replicas: TopicReplicas, index: int, error: ErrorCode) -> None:
        partition = replicas.partitions.pop(index)
        if self._fetchers is not None:
            self._fetchers.remove(partition)
        partition.release_all(error)

    def _apply_brokers(self) -> None:
        """Apply broker changes: a leader no longer waits for a fenced broker that was about to join the ISR."""
        for partition in self.partitions():
            partition.brokers_changed()

    def _apply_configs(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Apply changed settings. A changed broker default may affect every topic."""
        all_topics = any(resource.type == RESOURCE_BROKER for resource in delta.configs_changed)
        if all_topics:
            settings = effective_settings(self._settings, image)
            self._limit_rates(settings)
            self._logs.cordon(settings["cordoned.log.dirs"])
            self._verifies_transactions = settings["transaction.partition.verification.enable"]
            if self._fetchers is not None:
                self._fetchers.resize(settings["num.replica.fetchers"])
        changed = {resource.name for resource in delta.configs_changed}
        self._configure_next(
            image,
            [
                partition
                for replicas in self.topics()
                if all_topics or replicas.name in changed
                for partition in replicas.partitions.values()
            ],
        )
        self._changes.put(("throttles", image.next_offset), self._throttles_changed)

    def _limit_rates(self, settings: Settings) -> None:
        self.sending.limit_to(settings["leader.replication.throttled.rate"])
        self._fetching.limit_to(settings["follower.replication.throttled.rate"])
        self.moving.limit_to(settings["replica.alter.log.dirs.io.max.bytes.per.second"])

    def _throttles_changed(self) -> None:
        """Apply changed throttle rates or replicas: waiting fetches must be evaluated again."""
        if self._fetchers is not None:
            self._fetchers.check_throttle()
        for partition in self.partitions():
            if partition.follower_waiters:
                self.wake_soon(partition)

    def _configure_next(self, image: ClusterImage, partitions: list[Partition]) -> None:
        """Configure the partitions before later changes, some at a time."""
        self._changes.put_first(
            {
                ("configs", image.next_offset, start): partial(
                    self._configure, image, partitions[start : start + CONFIGURED_AT_ONCE]
                )
                for start in range(0, len(partitions), CONFIGURED_AT_ONCE)
            }
        )

    def _configure(self, image: ClusterImage, partitions: list[Partition]) -> None:
        for partition in partitions:
            if not self._has(partition):
                continue  # deleted in the meantime
            topic, index = partition.topic_partition
            settings = self._settings_of(image, topic)
            partition.configure(settings.log_config, settings.min_insync_replicas)
            partition.producers.verifies_transactions = self._verifies_transactions
            partition.throttled = settings.throttled.sides_of(index, self.broker_id)

    def _settings_of(self, image: ClusterImage, topic: str) -> TopicSettings:
        """Return the settings of a topic: the same object while its partitions are opened or configured in a row."""
        of_broker, overrides = effective_settings(self._settings, image), image.topic_configs(topic)
        last = self._last_settings
        if last is None or not last.are_of(of_broker, overrides):
            last = self._last_settings = TopicSettings(of_broker, overrides)
        return last


def _notify(waiters: Iterable[DataWaiter]) -> None:
    """Wake each fetch once, after all data that it may return has been noted."""
    parked = dict.fromkeys(waiter.note_data() for waiter in waiters)
    for fetch in parked:
        if fetch is not None:
            fetch.data_arrived()


def _leadership(state: PartitionImage) -> Leadership:
    return Leadership(state.leader, state.leader_epoch, state.partition_epoch, state.replicas, state.isr)
