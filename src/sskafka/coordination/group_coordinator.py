"""The group coordinator of this broker: it passes each request to the context of the group's partition.

Results are passed to the completion. They are response messages, unless the docstring of the method says otherwise. No
method waits.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import thread_time_ns
from typing import Any

from sskafka.coordination.completions import NO_REQUESTER
from sskafka.coordination.context import CoordinatorContext, CoordinatorEnvironment, Operation, ShardParameters
from sskafka.coordination.group_computations import GroupComputations
from sskafka.coordination.internal_topics import CONSUMER_OFFSETS
from sskafka.coordination.runtime import CoordinatorRuntime
from sskafka.groups.classic_group import State
from sskafka.groups.classic_requests import Joining
from sskafka.groups.consumer_group import Topic, Topics
from sskafka.groups.consumer_heartbeat import Heartbeat
from sskafka.groups.group import CLASSIC, Group, GroupEvent, OffsetCommitter
from sskafka.groups.group_settings import ConsumerTimings, GroupSettings
from sskafka.groups.log_records import GroupResult
from sskafka.groups.members import Client
from sskafka.groups.offset_requests import AllOffsets, FetchedOffset, OffsetCommit
from sskafka.groups.shard import GroupCoordinatorShard
from sskafka.groups.subscription import CONSUMER_PROTOCOL
from sskafka.metadata.delta import ConfigResource, MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import RESOURCE_GROUP
from sskafka.model.coordination import Completion, CoordinatorResult
from sskafka.model.counters import Sample
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition, uuid_text
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.sliced_work import SlicedWork
from sskafka.wire.messages.heartbeat import HeartbeatRequest
from sskafka.wire.messages.join_group import JoinGroupRequest
from sskafka.wire.messages.leave_group import LeaveGroupRequest
from sskafka.wire.messages.sync_group import SyncGroupRequest

FetchedOffsets = Mapping[TopicPartition, FetchedOffset]


def random_uuid_text() -> str:
    """Return a random id in Kafka's base64 form. As in Apache Kafka, it never begins with a dash."""
    while (text := uuid_text(uuid.uuid4().bytes)).startswith("-"):
        pass
    return text


class GroupCoordinator:
    def __init__(
        self,
        replicas: ReplicaManager,
        settings: Settings,
        environment: CoordinatorEnvironment,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
        new_member_id: Callable[[], str] = random_uuid_text,
    ) -> None:
        self._broker_settings = settings
        self._settings = GroupSettings.of(settings)
        self._new_uuid = new_uuid
        self._new_member_id = new_member_id
        self._image = ClusterImage()
        self._topics: Topics | None = None
        self._timings: dict[str, ConsumerTimings] = {}
        self.runtime: CoordinatorRuntime[GroupCoordinatorShard] = CoordinatorRuntime(
            CONSUMER_OFFSETS, replicas, self._make_shard, environment, self._perform
        )
        work = SlicedWork(environment.clock, environment.wheel, environment.background)
        self._computations = GroupComputations(self.runtime, work)
        self.runtime.on_begun = self._context_begun

    def _make_shard(self, parameters: ShardParameters) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            self._settings,
            parameters.timers,
            self._new_uuid,
            lambda: self.topics,
            self.timings_of,
            parameters.is_writable,
            self._new_member_id,
            thread_time_ns,
        )

    def timings_of(self, group_id: str) -> ConsumerTimings:
        """Return the timings of a consumer group. They are cached until settings change."""
        found = self._timings.get(group_id)
        if found is None:
            overrides = self._image.configs(ConfigResource(RESOURCE_GROUP, group_id))
            settings = effective_settings(self._broker_settings, self._image)
            found = self._timings[group_id] = ConsumerTimings.of(settings, overrides)
        return found

    @property
    def topics(self) -> Topics:
        """The topics of the cluster, computed on demand after a change."""
        if self._topics is None:
            self._topics = {
                name: Topic(topic.topic_id, len(topic.partitions)) for name, topic in self._image.topics_by_name.items()
            }
        return self._topics

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        before, self._image = self._image, image
        if _are_topics_changed(delta, before, image):
            self._topics = None
        if delta.configs_changed:
            self._timings.clear()
        self.runtime.metadata_changed(delta, image)
        deleted = [topic.name for topic in delta.topics_deleted.values()]
        if deleted:
            for context in self.runtime.all_contexts():
                context.write_eventually(lambda shard, now_ms: shard.topics_deleted(deleted))

    def _context_begun(self, context: CoordinatorContext[GroupCoordinatorShard]) -> None:
        """Delete the offsets of topics that do not exist, because the previous coordinator may not have done so.

        Topics are compared by name: the records of offsets have no topic ids. So offsets of a deleted topic stay if a
        topic of this name was created again before this coordinator has loaded."""
        context.after_load = lambda shard, now_ms: shard.topics_missing(self.topics)

    def samples(self) -> Iterator[Sample]:
        """Yield metrics of the groups: classic groups by state under Kafka's older names, all by protocol and state."""
        prefix, older = "kafka_server_group_coordinator_metrics_", "kafka_coordinator_group_groupmetadatamanager_"
        counts = Counter((group.type_name, group.state_name) for group in self.list_groups((), ()))
        yield Sample(older + "numgroups", (), counts.total())
        for state in State:
            yield Sample(f"{older}numgroups{state.value.lower()}", (), counts[CLASSIC, state.value])
        for (protocol, name), count in sorted(counts.items()):
            yield Sample(prefix + "groups", (("protocol", protocol), ("state", name)), count)
        yield from self.runtime.samples(prefix)

    def _perform(self, effect: object) -> None:
        self._computations.perform(effect)

    def stop(self) -> None:
        self._computations.stop()
        self.runtime.stop()

    # -- classic groups

    def join(self, request: JoinGroupRequest, version: int, client: Client, completion: Completion) -> None:
        joining = Joining(request, version, client, completion)
        self._write_named(request.group_id, lambda shard, now_ms: shard.join(joining, now_ms), completion)

    def abandon_join(self, group_id: str, completion: Completion) -> None:
        """Called when a client disconnects while its JoinGroup waits."""
        self._write(group_id, lambda shard, now_ms: shard.abandon_join(group_id, completion, now_ms), NO_REQUESTER)

    def sync(self, request: SyncGroupRequest, completion: Completion) -> None:
        self._write_named(request.group_id, lambda shard, now_ms: shard.sync(request, completion, now_ms), completion)

    def heartbeat(self, request: HeartbeatRequest, completion: Completion) -> None:
        self._write_named(request.group_id, lambda shard, now_ms: shard.heartbeat(request, now_ms), completion)

    def leave(self, request: LeaveGroupRequest, version: int, completion: Completion) -> None:
        self._write_named(request.group_id, lambda shard, now_ms: shard.leave(request, version, now_ms), completion)

    # -- consumer groups

    def consumer_heartbeat(self, heartbeat: Heartbeat, completion: Completion) -> None:
        self._write(
            heartbeat.request.group_id,
            lambda shard, now_ms: shard.consumer.heartbeat(heartbeat, now_ms),
            completion,
        )

    @property
    def default_assignor(self) -> str:
        return self._settings.assignors[0]

    # -- groups of any kind

    def list_groups(self, states: Iterable[str], types: Iterable[str]) -> Iterator[Group]:
        """Yield the groups of all loaded shards in one of the states and of one of the types, ignoring case."""
        wanted_states, wanted_types = ({word.lower() for word in words} for words in (states, types))
        for context in self.runtime.active_contexts():
            yield from context.shard.listed(wanted_states, wanted_types)

    @property
    def is_loading(self) -> bool:
        return self.runtime.is_loading

    def describe(self, group_id: str, describe: Callable[[str, Group | None], Any], completion: Completion) -> None:
        """Answer with `describe(group)`; the group is None if it does not exist."""
        self._read(group_id, lambda shard, now_ms: describe(group_id, shard.groups.get(group_id)), completion)

    def delete_group(self, group_id: str, completion: Completion) -> None:
        """Delete a group. The answer is ErrorCode.NONE."""
        self._write(group_id, lambda shard, now_ms: shard.delete_group(group_id, completion), completion)

    def describe_timeline(
        self, group_id: str, describe: Callable[[Iterable[GroupEvent]], Any], completion: Completion
    ) -> None:
        """Answer with `describe(events)` of what happened since this broker coordinates the group."""
        self._read(group_id, lambda shard, now_ms: describe(shard.find(group_id).timeline), completion)

    # -- offsets

    def commit_offsets(
        self,
        group_id: str,
        committer: OffsetCommitter,
        commits: list[OffsetCommit],
        retention_ms: int,
        completion: Completion,
    ) -> None:
        """Answer with the error codes, in the order of the commits."""
        self._write(
            group_id,
            lambda shard, now_ms: shard.commit_offsets(group_id, committer, commits, retention_ms, now_ms),
            completion,
        )

    def commit_offsets_in_transaction(
        self,
        group_id: str,
        committer: OffsetCommitter,
        commits: list[OffsetCommit],
        producer: ProducerIdAndEpoch,
        completion: Completion,
    ) -> None:
        """As `commit_offsets`, but the offsets take effect when the producer's transaction commits."""

        def operation(shard: GroupCoordinatorShard, now_ms: int) -> GroupResult:
            partitions = (commit.partition for commit in commits)
            shard.offset_requests.check_committer(
                group_id, committer._replace(is_transactional=True), partitions, now_ms
            )
            records, outcomes = shard.offset_requests.commit(group_id, commits, -1, now_ms)
            return CoordinatorResult(records, outcomes, producer=producer if records else None)

        self._write(group_id, operation, completion)

    def end_transaction(
        self,
        partition: int,
        producer: ProducerIdAndEpoch,
        coordinator_epoch: int,
        is_committed: bool,
        completion: Completion,
    ) -> None:
        """Append a marker to a partition of __consumer_offsets. Answer with None once it is committed."""
        self.runtime.end_transaction(partition, producer, coordinator_epoch, is_committed, completion)

    def fetch_offsets(
        self,
        group_id: str,
        partitions: list[TopicPartition] | None,
        require_stable: bool,
        member: tuple[str | None, int],
        completion: Completion,
    ) -> None:
        """Answer with FetchedOffsets, or, if `partitions` is None, with AllOffsets.

        `member`: id and epoch of the member that asks."""

        def question(shard: GroupCoordinatorShard, now_ms: int) -> FetchedOffsets | AllOffsets:
            group = shard.groups.get(group_id)
            if group is not None:
                group.check_offset_fetch(*member)
            if partitions is None:
                return shard.offset_requests.fetch_all(group_id, require_stable)
            return shard.offset_requests.fetch(group_id, partitions, require_stable)

        self._read(group_id, question, completion)

    def delete_offsets(self, group_id: str, partitions: list[TopicPartition], completion: Completion) -> None:
        """Answer with the error codes, in the order of the partitions."""
        if not group_id:
            completion.refuse(ErrorCode.INVALID_GROUP_ID)
            return

        def operation(shard: GroupCoordinatorShard, now_ms: int) -> GroupResult:
            group = shard.find(group_id)
            if not group.is_empty and group.protocol_type != CONSUMER_PROTOCOL:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
            records, outcomes = shard.offset_requests.delete(group, partitions)
            return CoordinatorResult(records, outcomes)

        self._write(group_id, operation, completion)

    # -- the way to the shard

    def _write(self, group_id: str, operation: Operation[GroupCoordinatorShard], completion: Completion) -> None:
        """Write to a group with any id. The empty id is valid, because old clients commit offsets under it."""
        self.runtime.write(group_id, operation, completion)

    def _write_named(self, group_id: str, operation: Operation[GroupCoordinatorShard], completion: Completion) -> None:
        if not group_id:
            completion.refuse(ErrorCode.INVALID_GROUP_ID)
        else:
            self._write(group_id, operation, completion)

    def _read(
        self, group_id: str, question: Callable[[GroupCoordinatorShard, int], Any], completion: Completion
    ) -> None:
        self.runtime.read(group_id, question, completion)


def _are_topics_changed(delta: MetadataDelta, before: ClusterImage, image: ClusterImage) -> bool:
    """Return whether topics were created, deleted or extended. A change of leaders does not affect groups."""
    if delta.topics_created or delta.topics_deleted:
        return True
    return any(
        len(before.topics_by_id[topic_id].partitions) != len(image.topics_by_id[topic_id].partitions)
        for topic_id in delta.partitions_changed
    )
