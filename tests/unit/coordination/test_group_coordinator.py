"""How the group coordinator handles created, deleted and extended topics."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from consumer_lab import ConsumerLab
from coordinator_lab import CoordinatorLab
from group_lab import Asked

from sskafka.coordination.completions import NO_REQUESTER
from sskafka.coordination.context import CoordinatorContext, CoordinatorState, ShardParameters
from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.coordination.runtime import CoordinatorRuntime
from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.members import Client
from sskafka.groups.offset_requests import OffsetCommit
from sskafka.groups.shard import GroupCoordinatorShard
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.model.coordination import Completion, CoordinatorResult
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication.errors import NotEnoughReplicasError
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.wire.messages.heartbeat import HeartbeatRequest
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_uuids = itertools.count()


class OneContext:
    """Stands for the shards of a broker: one for every group, on a log in memory."""

    def __init__(self) -> None:
        self.lab = CoordinatorLab()
        self.context: CoordinatorContext[GroupCoordinatorShard] = CoordinatorContext(
            0, self.lab.log, _shard, self.lab.environment
        )
        self.lab.turn(20)

    def all_contexts(self) -> list[CoordinatorContext[GroupCoordinatorShard]]:
        return [self.context]

    def active_contexts(self) -> list[CoordinatorContext[GroupCoordinatorShard]]:
        return [context for context in self.all_contexts() if context.state is CoordinatorState.ACTIVE]

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        pass

    def begin_anew(self) -> CoordinatorContext[GroupCoordinatorShard]:
        """As another broker would, from the log alone."""
        self.context = CoordinatorContext(0, self.lab.log, _shard, self.lab.environment)
        return self.context

    def commit(self, topic: str, offset: int) -> None:
        commits = [OffsetCommit(TopicPartition(topic, 0), offset, 0, "")]
        asked = Asked()
        self.context.write(
            lambda shard, now_ms: shard.commit_offsets("g", OffsetCommitter(), commits, -1, now_ms), asked
        )
        self.lab.turn(20)
        assert asked.response == [ErrorCode.NONE]

    def committed(self) -> dict[str, int]:
        offsets = self.context.shard.offsets.committed("g")
        return {partition.topic: found.offset for partition, found in offsets.items()}

    def write(
        self, key: str, operation: Callable[[GroupCoordinatorShard, int], CoordinatorResult], completion: Completion
    ) -> None:
        self.context.write(operation, completion)


def _shard(parameters: ShardParameters) -> GroupCoordinatorShard:
    settings = GroupSettings(initial_rebalance_delay_ms=0)
    return GroupCoordinatorShard(
        settings, parameters.timers, lambda: f"uuid-{next(_uuids)}", is_writable=parameters.is_writable
    )


class LabContexts:
    """One context, around the shard of the lab."""

    partition = 0

    def __init__(self, lab: ConsumerLab) -> None:
        self.lab = lab
        self.decisions: list[CoordinatorResult] = []

    @property
    def shard(self) -> GroupCoordinatorShard:
        return self.lab.shard

    def active_contexts(self) -> Iterator["LabContexts"]:
        yield self

    def all_contexts(self) -> Iterator["LabContexts"]:
        yield self

    def write_eventually(self, operation: Callable[[GroupCoordinatorShard, int], CoordinatorResult]) -> None:
        self.write(operation, NO_REQUESTER)

    def write(
        self, operation: Callable[[GroupCoordinatorShard, int], CoordinatorResult], completion: Completion
    ) -> None:
        decision = operation(self.shard, self.lab.time.now_ms())
        self.decisions.append(decision)
        self.lab.take(decision, completion)

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        pass


def image_of(**topics: tuple[bytes, int]) -> ClusterImage:
    image = ClusterImage()
    for name, (number, count) in topics.items():
        partitions = {index: PartitionImage((1,), (1,), 1, 0, 0) for index in range(count)}
        topic = image.topics_by_name[name] = TopicImage(name, number, partitions)
        image.topics_by_id[topic.topic_id] = topic
    return image


@pytest.fixture
def lab() -> ConsumerLab:
    return ConsumerLab()


@pytest.fixture
def contexts(lab: ConsumerLab) -> LabContexts:
    return LabContexts(lab)


@pytest.fixture
def groups(contexts: LabContexts) -> GroupCoordinator:
    made = GroupCoordinator(cast(ReplicaManager, None), Settings.resolve(), CoordinatorLab().environment)
    made.runtime = cast(CoordinatorRuntime[GroupCoordinatorShard], cast(Any, contexts))
    return made


def test_offsets_do_not_outlive_a_topic_that_is_made_anew_at_once(lab: ConsumerLab, groups: GroupCoordinator) -> None:
    """Both may come in one piece of news: who goes on in the new topic must not go on where it left off in the old."""
    before = image_of(t=(b"1" * 16, 1))
    groups.metadata_changed(MetadataDelta.from_empty(before), before)
    lab.commit(5)
    after = image_of(t=(b"2" * 16, 1))
    delta = MetadataDelta(topics_created={b"2" * 16}, topics_deleted=dict(before.topics_by_id))
    groups.metadata_changed(delta, after)
    assert lab.committed() is None


def test_a_group_waits_for_replicas_instead_of_being_loaded_anew(groups: GroupCoordinator) -> None:
    """Otherwise each attempt would restart the rebalances of all other groups of the shard."""
    contexts = OneContext()
    groups.runtime = cast(CoordinatorRuntime[GroupCoordinatorShard], cast(Any, contexts))
    joining = JoinGroupRequest("g", 10_000, 30_000, protocol_type="consumer")
    joining.protocols = [JoinGroupRequestProtocol("range", b"topics")]
    joined = Asked()
    groups.join(joining, 3, Client("client"), joined)
    contexts.lab.turn(50)
    member, shard = joined.response.member_id, contexts.context.shard
    log = contexts.lab.log
    log.is_writable, log.append_error = False, NotEnoughReplicasError("one is not enough")
    assignments = [SyncGroupRequestAssignment(member, b"all")]
    refused, again = Asked(), Asked()
    groups.sync(SyncGroupRequest("g", 1, member, assignments=assignments), refused)
    contexts.lab.turn(50)
    assert refused.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert contexts.context.shard is shard
    log.is_writable, log.append_error = True, None
    groups.sync(SyncGroupRequest("g", 1, member, assignments=assignments), again)
    contexts.lab.turn(50)
    assert again.response.assignment == b"all"


def test_an_assignment_that_fits_into_no_batch_is_refused_and_the_group_goes_on(groups: GroupCoordinator) -> None:
    contexts = OneContext()
    groups.runtime = cast(CoordinatorRuntime[GroupCoordinatorShard], cast(Any, contexts))
    joining = JoinGroupRequest("g", 10_000, 30_000, protocol_type="consumer")
    joining.protocols = [JoinGroupRequestProtocol("range", b"topics")]
    joined, refused, again, synced = Asked(), Asked(), Asked(), Asked()
    groups.join(joining, 3, Client("client"), joined)
    contexts.lab.turn(50)
    contexts.lab.log.batch_bytes_max = 1_000
    joining.member_id = member = joined.response.member_id
    shard = contexts.context.shard
    too_large = [SyncGroupRequestAssignment(member, b"x" * 1_000)]
    groups.sync(SyncGroupRequest("g", 1, member, assignments=too_large), refused)
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert contexts.lab.log.append_count == 0
    groups.join(joining, 3, Client("client"), again)
    assert again.response.generation_id == 2
    groups.sync(SyncGroupRequest("g", 2, member, assignments=[SyncGroupRequestAssignment(member, b"all")]), synced)
    contexts.lab.turn(50)
    assert synced.response.assignment == b"all"
    assert contexts.context.shard is shard


# ---- a static member that comes back


class StaticGroup(OneContext):
    """A stable group with the static member `i`."""

    def __init__(self, groups: GroupCoordinator) -> None:
        super().__init__()
        groups.runtime = cast(CoordinatorRuntime[GroupCoordinatorShard], cast(Any, self))
        self._groups = groups
        joined, synced = self.join(), Asked()
        self.old_id = joined.response.member_id
        groups.sync(
            SyncGroupRequest("g", 1, self.old_id, assignments=[SyncGroupRequestAssignment(self.old_id, b"all")]), synced
        )
        self.lab.turn(50)
        assert synced.response.assignment == b"all"

    def join(self, metadata: bytes = b"topics") -> Asked:
        request = JoinGroupRequest("g", 10_000, 30_000, group_instance_id="i", protocol_type="consumer")
        request.protocols = [JoinGroupRequestProtocol("range", metadata), JoinGroupRequestProtocol("sticky", metadata)]
        asked = Asked()
        self._groups.join(request, 9, Client("client"), asked)
        self.lab.turn(50)
        return asked

    @property
    def group(self) -> ClassicGroup:
        group = self.context.shard.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group

    def is_heartbeat_of_old_id_accepted(self) -> bool:
        asked = Asked()
        self._groups.heartbeat(HeartbeatRequest("g", 1, self.old_id, "i"), asked)
        self.lab.turn(50)
        return asked.code is ErrorCode.NONE


def test_a_static_member_takes_over_with_all_of_its_protocols(groups: GroupCoordinator) -> None:
    """The record keeps the selected protocol only; the others count in the next rebalance."""
    group = StaticGroup(groups)
    back = group.join()
    assert back.response.member_id != group.old_id
    assert group.group.static_members == {"i": back.response.member_id}
    assert [name for name, _ in group.group.members[back.response.member_id].protocols] == ["range", "sticky"]
    assert not group.is_heartbeat_of_old_id_accepted()


def test_a_static_member_whose_record_fits_into_no_batch_does_not_take_over(groups: GroupCoordinator) -> None:
    group = StaticGroup(groups)
    group.lab.log.batch_bytes_max = 1_000
    events = len(group.group.timeline)
    assert group.join(b"x" * 1_000).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert group.group.static_members == {"i": group.old_id}
    assert list(group.group.members) == [group.old_id]
    assert len(group.group.timeline) == events
    assert group.is_heartbeat_of_old_id_accepted()


def test_a_static_member_whose_record_is_not_appended_does_not_take_over(groups: GroupCoordinator) -> None:
    group = StaticGroup(groups)
    group.lab.log.append_error = NotEnoughReplicasError("one is not enough")
    assert group.join().code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.lab.log.append_error = None
    group.lab.turn(50)
    assert group.group.static_members == {"i": group.old_id}
    assert group.is_heartbeat_of_old_id_accepted()


def test_the_session_of_a_replaced_static_member_ends(groups: GroupCoordinator) -> None:
    """Only the new id has a session timer, which runs from the JoinGroup that brought the member back."""
    group = StaticGroup(groups)
    group.lab.turn(8_000)
    back = group.join()
    group.lab.turn(8_000)
    assert list(group.group.members) == [back.response.member_id]
    group.lab.turn(3_000)
    assert not group.group.members


# ---- topics that go while nobody can write it down


BEFORE = image_of(kept=(b"k" * 16, 1), gone=(b"g" * 16, 1))
AFTER = image_of(kept=(b"k" * 16, 1))
DELETION = MetadataDelta(topics_deleted={b"g" * 16: BEFORE.topics_by_name["gone"]})


@pytest.fixture
def one(groups: GroupCoordinator) -> OneContext:
    """With offsets of two topics."""
    contexts = OneContext()
    groups.runtime = cast(CoordinatorRuntime[GroupCoordinatorShard], cast(Any, contexts))
    groups.metadata_changed(MetadataDelta.from_empty(BEFORE), BEFORE)
    contexts.commit("kept", 3)
    contexts.commit("gone", 5)
    return contexts


def test_a_topic_that_is_deleted_while_a_coordinator_loads_takes_its_offsets_along(
    groups: GroupCoordinator, one: OneContext
) -> None:
    context = one.begin_anew()
    groups.metadata_changed(DELETION, AFTER)
    assert context.state is CoordinatorState.LOADING
    one.lab.turn(50)
    assert one.committed() == {"kept": 3}
    one.begin_anew()
    one.lab.turn(50)
    assert one.committed() == {"kept": 3}, "it is in the log, too"


def test_what_is_committed_to_a_topic_made_anew_stays(groups: GroupCoordinator, one: OneContext) -> None:
    one.begin_anew()
    groups.metadata_changed(DELETION, AFTER)
    again = image_of(kept=(b"k" * 16, 1), gone=(b"n" * 16, 1))
    groups.metadata_changed(MetadataDelta(topics_created={b"n" * 16}), again)
    one.lab.turn(50)
    one.commit("gone", 1)
    assert one.committed() == {"kept": 3, "gone": 1}


def test_offsets_go_before_anything_else_once_replicas_are_back(groups: GroupCoordinator, one: OneContext) -> None:
    log = one.lab.log
    log.is_writable = False
    groups.metadata_changed(DELETION, AFTER)
    one.lab.turn(50)
    assert one.committed() == {"kept": 3, "gone": 5}
    log.is_writable = True
    one.commit("gone", 1)  # of a new topic with that name
    one.lab.turn(5_000)
    assert one.committed() == {"kept": 3, "gone": 1}


def test_a_deletion_that_the_log_did_not_take_is_not_forgotten(groups: GroupCoordinator, one: OneContext) -> None:
    log = one.lab.log
    log.append_error = NotEnoughReplicasError("one is not enough")
    groups.metadata_changed(DELETION, AFTER)
    log.append_error = None
    one.lab.turn(50)
    assert one.committed() == {"kept": 3}


def test_a_new_coordinator_forgets_what_the_one_before_had_no_time_for(
    groups: GroupCoordinator, one: OneContext
) -> None:
    groups.metadata_changed(MetadataDelta(), AFTER)  # heard of the deletion before it was in charge
    groups._topics = None
    groups._context_begun(one.begin_anew())
    one.lab.turn(50)
    assert one.committed() == {"kept": 3}
