"""Consumer groups (KIP-848) while too few replicas of their partition are in sync: nothing changes, nothing is lost.

As with Apache Kafka, heartbeats that change nothing are answered, others hear COORDINATOR_NOT_AVAILABLE and are tried
again. The shard is not loaded anew: that would send away everybody else who waits for an answer.
"""

import pytest
from consumer_lab import REBALANCE_MS, topic_id
from coordinator_lab import CoordinatorLab
from group_lab import Asked

from sskafka.coordination.context import CoordinatorContext, CoordinatorState, ShardParameters
from sskafka.groups.consumer_group import ConsumerGroup, Topic
from sskafka.groups.consumer_heartbeat import Heartbeat
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.members import Client
from sskafka.groups.shard import GroupCoordinatorShard
from sskafka.model.errors import ErrorCode
from sskafka.replication.errors import NotEnoughReplicasError
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

LONGER_THAN_A_SESSION_MS = 60_000
BEAT_MS = 5_000


class World:
    epoch: int
    """Of the member "a"."""

    def __init__(self) -> None:
        self.lab = CoordinatorLab()
        self.topics = {"orders": Topic(topic_id("orders"), 4), "payments": Topic(topic_id("payments"), 2)}
        self.context: CoordinatorContext[GroupCoordinatorShard] = CoordinatorContext(
            0, self.lab.log, self._shard, self.lab.environment
        )
        self.lab.turn(20)
        self.shard = self.context.shard

    def _shard(self, parameters: ShardParameters) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            GroupSettings(), parameters.timers, lambda: "uuid", lambda: self.topics, is_writable=parameters.is_writable
        )

    def set_writable(self, is_writable: bool) -> None:
        log = self.lab.log
        log.is_writable = is_writable
        log.append_error = None if is_writable else NotEnoughReplicasError("one is not enough")

    def heartbeat(self, member_id: str, epoch: int, **fields: object) -> Asked:
        asked = Asked()
        request = ConsumerGroupHeartbeatRequest("g", member_id, epoch, **fields)  # type: ignore[arg-type]
        heartbeat = Heartbeat(request, 1, Client("client", "/10.0.0.1"))
        self.context.write(lambda shard, now_ms: shard.consumer.heartbeat(heartbeat, now_ms), asked)
        self.lab.turn(5)
        return asked

    def join(self, member_id: str) -> Asked:
        return self.heartbeat(
            member_id, 0, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=["orders"], topic_partitions=[]
        )

    @property
    def group(self) -> ConsumerGroup:
        group = self.context.shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group

    def check_not_loaded_anew(self) -> None:
        assert self.context.shard is self.shard
        assert self.context.state is CoordinatorState.ACTIVE


@pytest.fixture
def world() -> World:
    """A group with one member, whose partition cannot be written to."""
    made = World()
    made.epoch = made.join("a").response.member_epoch
    made.lab.turn(BEAT_MS)  # a new target may be made again
    made.set_writable(False)
    return made


def test_heartbeats_that_change_nothing_are_answered(world: World) -> None:
    for _ in range(LONGER_THAN_A_SESSION_MS // BEAT_MS):
        assert world.heartbeat("a", world.epoch).response.member_epoch == world.epoch
        world.lab.turn(BEAT_MS)
    assert list(world.group.members) == ["a"]
    world.check_not_loaded_anew()


def test_who_joins_is_told_to_try_again(world: World) -> None:
    assert world.join("b").code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(world.group.members) == ["a"]
    assert world.group.epoch == world.epoch
    world.check_not_loaded_anew()
    world.set_writable(True)
    assert world.join("b").response.member_epoch == world.epoch + 1
    assert world.heartbeat("a", world.epoch, topic_partitions=[]).code is ErrorCode.NONE


def test_a_new_group_leaves_no_trace(world: World) -> None:
    asked = Asked()
    request = ConsumerGroupHeartbeatRequest(
        "new", "m", 0, rebalance_timeout_ms=1, subscribed_topic_names=["orders"], topic_partitions=[]
    )
    heartbeat = Heartbeat(request, 1, Client("client", "/10.0.0.1"))
    world.context.write(lambda shard, now_ms: shard.consumer.heartbeat(heartbeat, now_ms), asked)
    assert asked.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "new" not in world.shard.groups


def test_a_member_that_wants_something_else_stays_a_member(world: World) -> None:
    """Its heartbeats are refused for longer than its session lasts, and count as signs of life all the same."""
    for _ in range(LONGER_THAN_A_SESSION_MS // BEAT_MS):
        asked = world.heartbeat("a", world.epoch, subscribed_topic_names=["payments"])
        assert asked.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.lab.turn(BEAT_MS)
    world.check_not_loaded_anew()
    world.set_writable(True)
    asked = world.heartbeat("a", world.epoch, subscribed_topic_names=["payments"], topic_partitions=[])
    assert asked.response.member_epoch == world.epoch + 1


def test_who_leaves_is_told_to_try_again(world: World) -> None:
    assert world.heartbeat("a", -1).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(world.group.members) == ["a"]
    world.check_not_loaded_anew()
    world.set_writable(True)
    assert world.heartbeat("a", -1).code is ErrorCode.NONE
    assert list(world.group.members) == []


def test_a_silent_member_is_put_out_once_that_can_be_written(world: World) -> None:
    world.lab.turn(LONGER_THAN_A_SESSION_MS)
    assert list(world.group.members) == ["a"]
    world.check_not_loaded_anew()
    world.set_writable(True)
    world.lab.turn(1_000)
    assert list(world.group.members) == []


def test_topics_that_grow_meanwhile_are_assigned_afterwards(world: World) -> None:
    world.topics = {"orders": Topic(topic_id("orders"), 6)}
    assert world.heartbeat("a", world.epoch).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.check_not_loaded_anew()
    world.set_writable(True)
    asked = world.heartbeat("a", world.epoch)
    (assigned,) = asked.response.assignment.topic_partitions
    assert (asked.response.member_epoch, assigned.partitions) == (world.epoch + 1, [0, 1, 2, 3, 4, 5])
