"""The classic protocol without a coordinator: every response is written by the test."""

from typing import Any

import pytest

from sskafka.client.config import GroupConfig
from sskafka.client.errors import ConfigError
from sskafka.client.group.assignors import decode_assignment, encode_assignment, encode_subscription
from sskafka.client.group.classic_membership import ClassicMembership
from sskafka.client.group.membership import ChangeKind, CommitterIdentity, MembershipChange, TopicSubscription
from sskafka.groups.subscription import read_subscription
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from sskafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
HEARTBEAT_MS, POLL_MS = 100, 5_000


def parts(*partitions: TopicPartition) -> frozenset[TopicPartition]:
    return frozenset(partitions)


class Member:
    """A membership with the time and the calls of its driver and poller."""

    def __init__(self, **properties: Any) -> None:
        config = GroupConfig(
            **{
                "group_id": "g",
                "partition_assignment_strategy": "range",
                "heartbeat_interval_ms": HEARTBEAT_MS,
                "max_poll_interval_ms": POLL_MS,
                **properties,
            }
        )
        self.now_ms = 0.0
        self.core = ClassicMembership(config, TopicSubscription(frozenset({"t"})), 0)
        self.sent: Any = None

    def send(self) -> Any:
        self.sent = self.core.next_request(self.now_ms)
        return self.sent

    def answer(self, response: Any) -> KafkaError | None:
        return self.core.answered(self.sent, response, self.now_ms)

    def join(self, generation: int = 1, member_id: str = "m", **fields: Any) -> None:
        assert isinstance(self.send(), JoinGroupRequest)
        response = JoinGroupResponse(
            generation_id=generation, protocol_name="range", leader="other", member_id=member_id
        )
        for name, value in fields.items():
            setattr(response, name, value)
        assert self.answer(response) is None

    def sync(self, *partitions: TopicPartition) -> None:
        assert isinstance(self.send(), SyncGroupRequest)
        assert self.answer(SyncGroupResponse(assignment=encode_assignment(partitions))) is None

    def beat(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.now_ms += HEARTBEAT_MS
        assert isinstance(self.send(), HeartbeatRequest)
        assert self.answer(HeartbeatResponse(error_code=code)) is None

    def apply(self, kind: ChangeKind, *partitions: TopicPartition) -> None:
        change = self.core.change
        assert change == MembershipChange(kind, parts(*partitions))
        self.core.applied(change, self.now_ms)

    def become_stable(self, *partitions: TopicPartition, generation: int = 1) -> None:
        self.join(generation)
        self.sync(*partitions)
        if partitions:
            self.apply(ChangeKind.ASSIGN, *partitions)


def stable(*partitions: TopicPartition, **properties: Any) -> Member:
    member = Member(**properties)
    member.become_stable(*partitions)
    return member


def test_a_new_member_gets_its_id_then_joins_and_syncs() -> None:
    member = Member()
    assert member.send().member_id == ""
    member.answer(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"))
    request = member.send()
    assert (request.member_id, request.rebalance_timeout_ms) == ("m", POLL_MS)
    member.join()
    member.sync(T0, T1)
    assert member.core.owned == frozenset()
    member.apply(ChangeKind.ASSIGN, T0, T1)
    assert member.core.owned == {T0, T1}
    assert member.send() is None
    assert member.core.wake_ms() == HEARTBEAT_MS
    member.beat()
    assert member.core.identity() == CommitterIdentity(1, "m", None)


def test_the_leader_assigns_the_partitions_of_all_members() -> None:
    member = Member()
    others = [JoinGroupResponseMember(name, None, encode_subscription(["t"], (), -1, None)) for name in ("a", "m")]
    member.join(leader="m", members=others)
    assert member.core.topics_to_count == {"t"}
    assert member.send() is None
    member.core.count({"t": 3}, member.now_ms)
    assignments = {one.member_id: decode_assignment(one.assignment) for one in member.send().assignments}
    assert assignments == {"a": {T0, T1}, "m": {TopicPartition("t", 2)}}


def test_a_static_leader_that_returns_assigns_nothing() -> None:
    member = Member(group_instance_id="i")
    member.join(leader="m", skip_assignment=True)
    assert member.send().assignments == []


def test_a_lost_response_is_asked_for_again() -> None:
    member = Member()
    first = member.send()
    member.core.failed(member.now_ms, 50)
    assert member.send() is None
    member.now_ms = 50
    assert member.send() == first
    member.join()
    sync = member.send()
    member.core.failed(member.now_ms, 50)
    member.now_ms = 100
    assert member.send() == sync
    member.sync(T0)
    member.apply(ChangeKind.ASSIGN, T0)
    member.now_ms += HEARTBEAT_MS
    beat = member.send()
    member.core.failed(member.now_ms, 10)
    member.now_ms += 10
    assert member.send() == beat
    assert member.core.owned == {T0}


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_moves_changes_nothing(code: ErrorCode) -> None:
    member = stable(T0)
    member.now_ms += HEARTBEAT_MS
    member.send()
    error = member.answer(HeartbeatResponse(error_code=code))
    assert error is not None
    assert error.code == code
    member.core.failed(member.now_ms, 1)
    assert (member.core.owned, member.core.change) == ({T0}, None)
    member.beat()


def test_an_eager_member_revokes_everything_before_it_joins_again() -> None:
    member = stable(T0, T1)
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)  # while the application is busy
    assert member.core.identity() is not None
    member.apply(ChangeKind.REVOKE, T0, T1)
    member.become_stable(T0, generation=2)
    assert member.core.owned == {T0}


def test_a_rebalance_replaces_an_assignment_that_the_poller_has_not_applied() -> None:
    member = Member()
    member.join()
    member.sync(T0)
    assert member.core.change is not None
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert member.core.change is None
    member.become_stable(T1, generation=2)


def test_a_cooperative_member_keeps_its_partitions_and_joins_once_more_after_a_revocation() -> None:
    member = stable(T0, T1, partition_assignment_strategy="cooperative-sticky")
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert member.core.change is None
    subscription = read_subscription(member.send().protocols[0].metadata)
    assert subscription is not None
    assert [(one.topic, one.partitions) for one in subscription.owned_partitions] == [("t", [0, 1])]
    member.join(generation=2)
    member.sync(T0)
    assert member.core.owned == {T0, T1}
    member.apply(ChangeKind.REVOKE, T1)
    member.become_stable(generation=3)
    assert member.core.change == MembershipChange(ChangeKind.REVOKE, parts(T0))


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_removed_member_loses_its_partitions_and_joins_anew(code: ErrorCode) -> None:
    member = stable(T0)
    member.beat(code)
    assert member.core.identity() is None
    assert member.send() is None, "it joins when the application knows of the loss"
    member.apply(ChangeKind.LOSE, T0)
    assert member.send().member_id == ("" if code == ErrorCode.UNKNOWN_MEMBER_ID else "m")


def test_a_member_removed_amid_a_revocation_loses_the_rest() -> None:
    member = stable(T0, T1, partition_assignment_strategy="cooperative-sticky")
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    member.join(generation=2)
    member.sync(T0)
    revocation = member.core.change
    assert revocation == MembershipChange(ChangeKind.REVOKE, parts(T1))
    member.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    member.core.applied(revocation, member.now_ms)  # the poller was at it
    member.apply(ChangeKind.LOSE, T0)
    assert isinstance(member.send(), JoinGroupRequest)


def test_a_commit_that_finds_out_that_the_member_was_removed() -> None:
    member = stable(T0)
    identity = member.core.identity()
    assert identity is not None
    member.core.commit_refused(ErrorCode.ILLEGAL_GENERATION, identity, member.now_ms)
    assert member.core.identity() is None
    member.apply(ChangeKind.LOSE, T0)
    member.become_stable(T0, generation=5)
    member.core.commit_refused(ErrorCode.ILLEGAL_GENERATION, identity, member.now_ms)
    assert member.core.identity() == CommitterIdentity(5, "m", None), "that was the commit of an earlier membership"


def test_a_commit_amid_a_rebalance_hastens_the_next_heartbeat() -> None:
    member = stable(T0)
    identity = member.core.identity()
    assert identity is not None
    member.core.commit_refused(ErrorCode.REBALANCE_IN_PROGRESS, identity, member.now_ms)
    assert isinstance(member.send(), HeartbeatRequest)
    assert member.core.owned == {T0}


def test_a_rebalance_between_join_and_sync() -> None:
    member = Member()
    member.join()
    member.send()
    assert member.answer(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)) is None
    member.become_stable(T0, generation=2)


def test_without_polls_the_member_leaves_and_joins_with_the_next_poll() -> None:
    member = stable(T0)
    member.now_ms = POLL_MS
    assert isinstance(member.send(), LeaveGroupRequest)
    assert member.core.identity() is None, "its commits are refused from now on"
    member.answer(LeaveGroupResponse())
    member.now_ms += POLL_MS
    assert member.send() is None
    assert member.core.wake_ms() == float("inf")
    assert member.core.polled(member.now_ms)
    assert member.send() is None
    member.apply(ChangeKind.LOSE, T0)
    assert member.send().member_id == ""


def test_a_poll_before_the_leave_is_answered() -> None:
    member = stable(T0)
    member.now_ms = POLL_MS
    member.send()
    member.core.polled(member.now_ms)
    member.apply(ChangeKind.LOSE, T0)
    member.core.failed(member.now_ms, 10)
    assert isinstance(member.send(), JoinGroupRequest)


def test_polls_keep_the_member() -> None:
    member = stable(T0)
    for _ in range(3 * POLL_MS // HEARTBEAT_MS):
        member.beat()
        assert not member.core.polled(member.now_ms)
    assert member.core.owned == {T0}


def test_a_static_member_does_not_leave() -> None:
    member = stable(T0, group_instance_id="i")
    assert member.core.leave_request() is None
    member.now_ms = POLL_MS
    assert member.send() is None
    assert member.core.change == MembershipChange(ChangeKind.LOSE, parts(T0))


def test_a_new_subscription_joins_again() -> None:
    member = stable(T0)
    member.core.resubscribe(TopicSubscription(frozenset({"u"})), member.now_ms)
    member.apply(ChangeKind.REVOKE, T0)
    subscription = read_subscription(member.send().protocols[0].metadata)
    assert subscription is not None
    assert subscription.topics == ["u"]


def test_a_new_subscription_while_joining_joins_again_afterwards() -> None:
    member = Member()
    member.send()
    member.core.resubscribe(TopicSubscription(frozenset({"u"})), member.now_ms)
    member.answer(JoinGroupResponse(generation_id=1, protocol_name="range", leader="x", member_id="m"))
    member.sync()
    assert isinstance(member.send(), JoinGroupRequest)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.FENCED_INSTANCE_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.GROUP_AUTHORIZATION_FAILED],
)
def test_errors_that_do_not_go_away_are_raised(code: ErrorCode) -> None:
    member = Member()
    member.send()
    assert member.answer(JoinGroupResponse(error_code=code)) is None
    assert isinstance(member.core.failure, KafkaError)
    assert member.core.failure.code == code
    assert member.send() is None


def test_a_fenced_static_member_loses_its_partitions() -> None:
    member = stable(T0, group_instance_id="i")
    member.beat(ErrorCode.FENCED_INSTANCE_ID)
    assert "group.instance.id 'i'" in str(member.core.failure)
    member.apply(ChangeKind.LOSE, T0)
    assert member.send() is None


def test_an_assignment_that_cannot_be_read_is_an_error() -> None:
    member = Member()
    member.join()
    member.send()
    member.answer(SyncGroupResponse(assignment=b"\x00"))
    assert "assignment" in str(member.core.failure)


def test_unknown_strategies_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected some of range, roundrobin, cooperative-sticky"):
        Member(partition_assignment_strategy="range,stiky")
