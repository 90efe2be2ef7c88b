"""What the coordinator of groups makes of news about topics."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from consumer_lab import ConsumerLab
from group_lab import Asked
from shard_lab import ShardLab

from sskafka.coordination.completions import NOBODY
from sskafka.coordination.coordinator import Coordinator
from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.coordination.shard import Place, Shard, ShardState
from sskafka.groups.group import Committer
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.machine import GroupMachine
from sskafka.groups.members import Client
from sskafka.groups.offset_requests import OffsetCommit
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.model.coordination import Completion, Decision
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication.errors import NotEnoughReplicasError
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


class OneShard:
    """Stands for the shards of a broker: one for every group, on a log in memory."""

    def __init__(self) -> None:
        self.lab = ShardLab()
        self.shard: Shard[GroupMachine] = Shard(0, self.lab.log, _machine, self.lab.runtime)
        self.lab.turn(20)

    def all_shards(self) -> list[Shard[GroupMachine]]:
        return [self.shard]

    def active_shards(self) -> list[Shard[GroupMachine]]:
        return [shard for shard in self.all_shards() if shard.state is ShardState.ACTIVE]

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        pass

    def begin_anew(self) -> Shard[GroupMachine]:
        """As another broker would, from the log alone."""
        self.shard = Shard(0, self.lab.log, _machine, self.lab.runtime)
        return self.shard

    def commit(self, topic: str, offset: int) -> None:
        commits = [OffsetCommit(TopicPartition(topic, 0), offset, 0, "")]
        asked = Asked()
        self.shard.write(lambda machine, now_ms: machine.commit_offsets("g", Committer(), commits, -1, now_ms), asked)
        self.lab.turn(20)
        assert asked.response == [ErrorCode.NONE]

    def committed(self) -> dict[str, int]:
        offsets = self.shard.machine.offsets.committed("g")
        return {partition.topic: found.offset for partition, found in offsets.items()}

    def write(self, key: str, operation: Callable[[GroupMachine, int], Decision], completion: Completion) -> None:
        self.shard.write(operation, completion)


def _machine(place: Place) -> GroupMachine:
    settings = GroupSettings(initial_rebalance_delay_ms=0)
    return GroupMachine(settings, place.timers, lambda: "uuid", is_writable=place.is_writable)


class LabShards:
    """One shard, which is the lab's machine."""

    partition = 0

    def __init__(self, lab: ConsumerLab) -> None:
        self.lab = lab
        self.decisions: list[Decision] = []

    @property
    def machine(self) -> GroupMachine:
        return self.lab.machine

    def active_shards(self) -> Iterator["LabShards"]:
        yield self

    def all_shards(self) -> Iterator["LabShards"]:
        yield self

    def write_eventually(self, operation: Callable[[GroupMachine, int], Decision]) -> None:
        self.write(operation, NOBODY)

    def write(self, operation: Callable[[GroupMachine, int], Decision], completion: Completion) -> None:
        decision = operation(self.machine, self.lab.time.now_ms())
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
def shards(lab: ConsumerLab) -> LabShards:
    return LabShards(lab)


@pytest.fixture
def groups(shards: LabShards) -> GroupCoordinator:
    made = GroupCoordinator(cast(ReplicaManager, None), Settings.resolve(), ShardLab().runtime)
    made.shards = cast(Coordinator[GroupMachine], cast(Any, shards))
    return made


def test_offsets_do_not_outlive_a_topic_that_is_made_anew_at_once(lab: ConsumerLab, groups: GroupCoordinator) -> None:
    """Both may come in one piece of news: who goes on in the new topic must not go on where it left off in the old."""
    before = image_of(t=(b"1" * 16, 1))
    groups.metadata_changed(MetadataDelta.of_everything(before), before)
    lab.commit(5)
    after = image_of(t=(b"2" * 16, 1))
    delta = MetadataDelta(topics_created={b"2" * 16}, topics_deleted=dict(before.topics_by_id))
    groups.metadata_changed(delta, after)
    assert lab.committed() is None


def test_a_group_waits_for_replicas_instead_of_being_loaded_anew(groups: GroupCoordinator) -> None:
    """Everybody else's rebalances on the same shard would begin anew with every try."""
    shards = OneShard()
    groups.shards = cast(Coordinator[GroupMachine], cast(Any, shards))
    joining = JoinGroupRequest("g", 10_000, 30_000, protocol_type="consumer")
    joining.protocols = [JoinGroupRequestProtocol("range", b"topics")]
    joined = Asked()
    groups.join(joining, 3, Client("client"), joined)
    shards.lab.turn(50)
    member, machine = joined.response.member_id, shards.shard.machine
    log = shards.lab.log
    log.is_writable, log.append_error = False, NotEnoughReplicasError("one is not enough")
    assignments = [SyncGroupRequestAssignment(member, b"all")]
    refused, again = Asked(), Asked()
    groups.sync(SyncGroupRequest("g", 1, member, assignments=assignments), refused)
    shards.lab.turn(50)
    assert refused.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shards.shard.machine is machine
    log.is_writable, log.append_error = True, None
    groups.sync(SyncGroupRequest("g", 1, member, assignments=assignments), again)
    shards.lab.turn(50)
    assert again.response.assignment == b"all"


def test_an_assignment_that_fits_into_no_batch_is_refused_and_the_group_goes_on(groups: GroupCoordinator) -> None:
    shards = OneShard()
    groups.shards = cast(Coordinator[GroupMachine], cast(Any, shards))
    joining = JoinGroupRequest("g", 10_000, 30_000, protocol_type="consumer")
    joining.protocols = [JoinGroupRequestProtocol("range", b"topics")]
    joined, refused, again, synced = Asked(), Asked(), Asked(), Asked()
    groups.join(joining, 3, Client("client"), joined)
    shards.lab.turn(50)
    shards.lab.log.batch_bytes_max = 1_000
    joining.member_id = member = joined.response.member_id
    machine = shards.shard.machine
    too_large = [SyncGroupRequestAssignment(member, b"x" * 1_000)]
    groups.sync(SyncGroupRequest("g", 1, member, assignments=too_large), refused)
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert shards.lab.log.append_count == 0
    groups.join(joining, 3, Client("client"), again)
    assert again.response.generation_id == 2
    groups.sync(SyncGroupRequest("g", 2, member, assignments=[SyncGroupRequestAssignment(member, b"all")]), synced)
    shards.lab.turn(50)
    assert synced.response.assignment == b"all"
    assert shards.shard.machine is machine


# ---- topics that go while nobody can write it down


BEFORE = image_of(kept=(b"k" * 16, 1), gone=(b"g" * 16, 1))
AFTER = image_of(kept=(b"k" * 16, 1))
DELETION = MetadataDelta(topics_deleted={b"g" * 16: BEFORE.topics_by_name["gone"]})


@pytest.fixture
def one_shard(groups: GroupCoordinator) -> OneShard:
    """With offsets of two topics."""
    shards = OneShard()
    groups.shards = cast(Coordinator[GroupMachine], cast(Any, shards))
    groups.metadata_changed(MetadataDelta.of_everything(BEFORE), BEFORE)
    shards.commit("kept", 3)
    shards.commit("gone", 5)
    return shards


def test_a_topic_that_is_deleted_while_a_shard_loads_takes_its_offsets_along(
    groups: GroupCoordinator, one_shard: OneShard
) -> None:
    shard = one_shard.begin_anew()
    groups.metadata_changed(DELETION, AFTER)
    assert shard.state is ShardState.LOADING
    one_shard.lab.turn(50)
    assert one_shard.committed() == {"kept": 3}
    one_shard.begin_anew()
    one_shard.lab.turn(50)
    assert one_shard.committed() == {"kept": 3}, "it is in the log, too"


def test_what_is_committed_to_a_topic_made_anew_stays(groups: GroupCoordinator, one_shard: OneShard) -> None:
    one_shard.begin_anew()
    groups.metadata_changed(DELETION, AFTER)
    again = image_of(kept=(b"k" * 16, 1), gone=(b"n" * 16, 1))
    groups.metadata_changed(MetadataDelta(topics_created={b"n" * 16}), again)
    one_shard.lab.turn(50)
    one_shard.commit("gone", 1)
    assert one_shard.committed() == {"kept": 3, "gone": 1}


def test_offsets_go_before_anything_else_once_replicas_are_back(groups: GroupCoordinator, one_shard: OneShard) -> None:
    log = one_shard.lab.log
    log.is_writable = False
    groups.metadata_changed(DELETION, AFTER)
    one_shard.lab.turn(50)
    assert one_shard.committed() == {"kept": 3, "gone": 5}
    log.is_writable = True
    one_shard.commit("gone", 1)  # of a new topic with that name
    one_shard.lab.turn(5_000)
    assert one_shard.committed() == {"kept": 3, "gone": 1}


def test_a_deletion_that_the_log_did_not_take_is_not_forgotten(groups: GroupCoordinator, one_shard: OneShard) -> None:
    log = one_shard.lab.log
    log.append_error = NotEnoughReplicasError("one is not enough")
    groups.metadata_changed(DELETION, AFTER)
    log.append_error = None
    one_shard.lab.turn(50)
    assert one_shard.committed() == {"kept": 3}


def test_a_new_coordinator_forgets_what_the_one_before_had_no_time_for(
    groups: GroupCoordinator, one_shard: OneShard
) -> None:
    groups.metadata_changed(MetadataDelta(), AFTER)  # heard of the deletion before it was in charge
    groups._topics = None
    groups._shard_begun(one_shard.begin_anew())
    one_shard.lab.turn(50)
    assert one_shard.committed() == {"kept": 3}
