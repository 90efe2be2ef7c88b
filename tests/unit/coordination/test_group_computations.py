"""Target assignments of large groups on a coordinator's context: computed in later turns, written when done."""

from itertools import count
from typing import Any, cast

import pytest
from coordinator_lab import CoordinatorLab
from group_lab import Asked
from virtual_time import VirtualTime

from sskafka.coordination.context import CoordinatorContext, CoordinatorState, Operation, ShardParameters
from sskafka.coordination.group_computations import GroupComputations
from sskafka.coordination.runtime import CoordinatorRuntime
from sskafka.groups import target_assignment
from sskafka.groups.consumer_group import ConsumerGroup, Topic
from sskafka.groups.consumer_heartbeat import Heartbeat
from sskafka.groups.group_settings import ConsumerTimings, GroupSettings
from sskafka.groups.members import Client
from sskafka.groups.shard import GroupCoordinatorShard
from sskafka.model.coordination import Completion
from sskafka.model.errors import ErrorCode
from sskafka.runtime.sliced_work import SlicedWork
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

TOPICS = 40


class SlowClock:
    """Shows a millisecond more at every look, so that a slice has one step."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self._looks = 0

    def now_ms(self) -> int:
        return self._time.now_ms()

    def monotonic_ms(self) -> float:
        self._looks += 1
        return self._time.monotonic_ms() + self._looks


class Lab:
    """One partition of __consumer_offsets, on a log in memory. No group is small."""

    def __init__(self) -> None:
        self.lab = CoordinatorLab()
        self.log = self.lab.log
        self.topics = {f"t{number}": Topic(b"topic%11d" % number, 1) for number in range(TOPICS)}
        environment = self.lab.environment
        self.work = SlicedWork(SlowClock(self.lab.time), environment.wheel, environment.background)
        runtime = cast(CoordinatorRuntime[GroupCoordinatorShard], self)
        self.computations = GroupComputations(runtime, self.work)
        self._uuids = count()
        self.begin()

    def begin(self) -> None:
        self.context: CoordinatorContext[GroupCoordinatorShard] = CoordinatorContext(
            0, self.lab.log, self._make_shard, self.lab.environment, self.computations.perform
        )
        self.turn(20)

    def _make_shard(self, parameters: ShardParameters) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            GroupSettings(consumer_timings=ConsumerTimings(assignment_interval_ms=0)),
            parameters.timers,
            lambda: f"uuid-{next(self._uuids)}",
            lambda: self.topics,
            is_writable=parameters.is_writable,
        )

    # -- as the runtime

    def active_shard(self, key: str) -> GroupCoordinatorShard | None:
        return self.context.shard if self.context.state is CoordinatorState.ACTIVE else None

    def write(self, key: str, operation: Operation[GroupCoordinatorShard], completion: Completion) -> None:
        self.context.write(operation, completion)

    # -- what happens

    def turn(self, duration_ms: float = 1) -> None:
        self.lab.turn(duration_ms)

    def heartbeat(self, member_id: str, epoch: int, group_id: str = "g", **fields: Any) -> Asked:
        request = ConsumerGroupHeartbeatRequest(group_id, member_id, epoch, **fields)
        asked = Asked()
        heartbeat = Heartbeat(request, 1, Client("client", "/10.0.0.1"))
        self.context.write(lambda shard, now_ms: shard.consumer.heartbeat(heartbeat, now_ms), asked)
        self.turn()
        return asked

    def join(self, member_id: str = "m", group_id: str = "g") -> Asked:
        fields = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": list(self.topics), "topic_partitions": []}
        return self.heartbeat(member_id, 0, group_id, **fields)

    @property
    def group(self) -> ConsumerGroup:
        group = self.context.shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(target_assignment, "AT_ONCE_MAX", -1)
    return Lab()


def test_a_new_group_begins_without_partitions_and_gets_them_with_a_later_heartbeat(lab: Lab) -> None:
    joined = lab.join()
    assert joined.code is ErrorCode.NONE
    assert joined.response.member_epoch == 1
    assert not list(joined.response.assignment.topic_partitions)
    lab.turn(500)
    assert lab.group.target_epoch == 2
    answered = lab.heartbeat("m", 1)
    assert answered.response.member_epoch == 2
    assert len(answered.response.assignment.topic_partitions) == TOPICS


def test_a_new_coordinator_has_the_target_or_computes_it(lab: Lab) -> None:
    lab.join()
    lab.begin()
    assert lab.group.target_epoch == 1, "the group has begun, and its target was not written"
    lab.heartbeat("m", 1)
    lab.turn(500)
    assert lab.group.target_epoch == 2
    lab.begin()
    assert lab.group.target_epoch == 2
    assert len(lab.group.target["m"]) == TOPICS


def test_a_computation_ends_when_the_context_is_loaded_anew(lab: Lab) -> None:
    lab.join()
    assert len(lab.work) == 1
    lab.log.append_error = RuntimeError("the disk")
    lab.heartbeat("other", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t1"], topic_partitions=[])
    lab.log.append_error = None
    lab.turn(500)
    assert not len(lab.work)
    assert lab.group.target_epoch == 1
    assert list(lab.group.members) == ["m"]


def test_a_target_is_not_written_by_a_broker_that_has_lost_the_partition(lab: Lab) -> None:
    lab.join()
    end_offset = lab.log.log_end_offset
    lab.log.resign()
    lab.turn(500)
    assert lab.log.log_end_offset == end_offset
    lab.context.stop()
    lab.turn(500)
    assert not len(lab.work)


def test_while_too_few_replicas_are_in_sync_nothing_is_computed_and_later_a_heartbeat_asks_again(lab: Lab) -> None:
    lab.join()
    lab.log.is_writable = False
    lab.turn(500)
    assert lab.group.target_epoch == 1
    assert lab.heartbeat("m", 1).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not len(lab.work)
    lab.log.is_writable = True
    assert lab.heartbeat("m", 1).code is ErrorCode.NONE
    lab.turn(500)
    assert lab.group.target_epoch == 2


def test_a_target_larger_than_a_batch_is_written_in_parts(lab: Lab) -> None:
    """Each record fits, all of them together do not."""
    lab.log.batch_bytes_max = 1_000
    lab.join("m1")
    lab.join("m2")
    lab.turn(500)
    lab.heartbeat("m2", 1)
    lab.turn(500)
    assert lab.group.target_epoch == 3
    assert {len(share) for share in lab.group.target.values()} == {TOPICS // 2}
    lab.begin()
    assert {len(share) for share in lab.group.target.values()} == {TOPICS // 2}


def test_a_target_that_cannot_be_written_is_an_error_until_the_group_changes(lab: Lab) -> None:
    lab.join("m1")
    lab.log.batch_bytes_max = 500
    lab.turn(500)
    assert lab.group.target_epoch == 1
    refused = lab.heartbeat("m1", 1)
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not len(lab.work), "it would be computed with every heartbeat"
    assert lab.heartbeat("m1", 1, subscribed_topic_names=["t1", "t2"]).code is ErrorCode.NONE
    lab.turn(500)
    assert lab.group.target_epoch == 3
    assert len(lab.group.target["m1"]) == 2


def test_members_that_join_meanwhile_are_in_the_next_target(lab: Lab) -> None:
    lab.join("m1")
    lab.turn(5)
    lab.join("m2")
    lab.turn(500)
    assert [lab.group.target_epoch, lab.group.epoch] == [2, 3], "it was begun for one member"
    assert list(lab.group.target) == ["m1"]
    for _ in range(3):
        for member in list(lab.group.members.values()):
            owned = lab.heartbeat(member.member_id, member.epoch, topic_partitions=[])
            assert owned.code is ErrorCode.NONE
        lab.turn(500)
    assert lab.group.target_epoch == lab.group.epoch == 3
    assert {len(share) for share in lab.group.target.values()} == {TOPICS // 2}
