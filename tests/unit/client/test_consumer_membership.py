"""The consumer protocol (KIP-848) without a coordinator: every response is written by the test."""

from typing import Any

import pytest

from sskafka.client.config import GroupConfig
from sskafka.client.group.consumer_membership import ConsumerMembership
from sskafka.client.group.membership import ChangeKind, CommitterIdentity, MembershipChange, TopicSubscription
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TOPIC = b"t".ljust(16, b"-")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
HEARTBEAT_MS, POLL_MS = 100, 5_000


class Member:
    def __init__(self, subscription: TopicSubscription | None = None, **properties: Any) -> None:
        config = GroupConfig(
            **{"group_id": "g", "group_protocol": "consumer", "max_poll_interval_ms": POLL_MS, **properties}
        )
        self.now_ms = 0.0
        self.core = ConsumerMembership(config, subscription or TopicSubscription(frozenset({"t"})), "m", 0)
        self.core.learn_topics({TOPIC: "t"}, 0)
        self.sent: Any = None

    def send(self) -> ConsumerGroupHeartbeatRequest | None:
        request = self.core.next_request(self.now_ms)
        assert request is None or isinstance(request, ConsumerGroupHeartbeatRequest)
        self.sent = request
        return request

    def due(self) -> ConsumerGroupHeartbeatRequest:
        request = self.send()
        assert request is not None
        return request

    def answer(self, code: ErrorCode = ErrorCode.NONE, epoch: int = 1, assigned: Any = None) -> KafkaError | None:
        assignment = None if assigned is None else Assignment([TopicPartitions(TOPIC, list(assigned))])
        response = ConsumerGroupHeartbeatResponse(
            error_code=code, member_epoch=epoch, heartbeat_interval_ms=HEARTBEAT_MS, assignment=assignment
        )
        return self.core.answered(self.sent, response, self.now_ms)

    def beat(self, code: ErrorCode = ErrorCode.NONE, epoch: int = 1, assigned: Any = None) -> None:
        self.now_ms += HEARTBEAT_MS
        self.due()
        assert self.answer(code, epoch, assigned) is None

    def apply(self, kind: ChangeKind, *partitions: TopicPartition) -> None:
        change = self.core.change
        assert change == MembershipChange(kind, frozenset(partitions))
        self.core.applied(change, self.now_ms)


def owned(request: ConsumerGroupHeartbeatRequest) -> list[int] | None:
    if request.topic_partitions is None:
        return None
    return [index for topic in request.topic_partitions for index in topic.partitions]


def joined(*numbers: int, **properties: Any) -> Member:
    """A member that owns these partitions and has reported them."""
    member = Member(**properties)
    member.due()
    member.answer(assigned=numbers)
    if numbers:
        member.apply(ChangeKind.ASSIGN, *(TopicPartition("t", number) for number in numbers))
        member.now_ms += HEARTBEAT_MS
        assert owned(member.due()) == list(numbers)
        member.answer()
    return member


def test_the_first_heartbeat_says_everything_and_later_ones_what_changed() -> None:
    member = Member(group_remote_assignor="range")
    first = member.due()
    assert (first.member_id, first.member_epoch, first.topic_partitions) == ("m", 0, [])
    assert (first.rebalance_timeout_ms, first.subscribed_topic_names, first.server_assignor) == (
        POLL_MS,
        ["t"],
        "range",
    )
    member.answer(epoch=3, assigned=[0, 1])
    assert member.send() is None
    member.apply(ChangeKind.ASSIGN, T0, T1)
    member.now_ms += HEARTBEAT_MS
    second = member.due()
    assert (second.member_epoch, owned(second)) == (3, [0, 1])
    assert (second.rebalance_timeout_ms, second.subscribed_topic_names, second.server_assignor) == (-1, None, None)
    member.answer(epoch=3)
    assert member.send() is None
    member.now_ms += HEARTBEAT_MS
    assert owned(member.due()) is None


def test_partitions_are_revoked_then_reported_then_others_are_assigned() -> None:
    member = joined(0, 1)
    member.beat(assigned=[0])
    assert member.core.owned == {T0, T1}
    member.beat()  # while the application is busy
    member.apply(ChangeKind.REVOKE, T1)
    assert owned(member.due()) == [0]
    member.answer(epoch=2)
    member.beat(epoch=2, assigned=[0, 2])
    member.apply(ChangeKind.ASSIGN, TopicPartition("t", 2))
    assert member.core.identity() == CommitterIdentity(2, "m", None)


def test_assigned_partitions_are_reported_before_the_poller_has_added_them() -> None:
    """Otherwise the poller could add them while the heartbeat is on its way, which looks like a revocation then."""
    member = Member()
    member.due()
    member.answer(assigned=[0, 1])
    member.now_ms += HEARTBEAT_MS
    assert owned(member.due()) == [0, 1]
    member.apply(ChangeKind.ASSIGN, T0, T1)
    member.answer(assigned=[0])
    member.apply(ChangeKind.REVOKE, T1)
    assert owned(member.due()) == [0]


def test_partitions_that_were_never_added_are_released_at_once() -> None:
    member = Member()
    member.due()
    member.answer(assigned=[0, 1])
    member.beat(assigned=[0])
    assert owned(member.due()) == [0]
    member.apply(ChangeKind.ASSIGN, T0)


def test_a_new_target_amid_a_revocation() -> None:
    member = joined(0, 1)
    member.beat(assigned=[0])
    member.beat(assigned=[])
    member.apply(ChangeKind.REVOKE, T1)
    member.apply(ChangeKind.REVOKE, T0)
    assert owned(member.due()) == []


def test_after_a_lost_response_the_heartbeat_says_everything_again() -> None:
    member = joined(0)
    member.now_ms += HEARTBEAT_MS
    member.due()
    member.core.failed(member.now_ms, 10)
    assert member.send() is None
    member.now_ms += 10
    again = member.due()
    assert (again.member_epoch, owned(again), again.subscribed_topic_names) == (1, [0], ["t"])
    member.answer(epoch=2, assigned=[0, 1])
    member.apply(ChangeKind.ASSIGN, T1)


def test_every_tenth_heartbeat_says_everything_and_finds_a_missed_assignment() -> None:
    """A late duplicate of the join may be answered with an assignment that never arrives."""
    member = joined()
    wholes = []
    for number in range(1, 21):
        member.now_ms += HEARTBEAT_MS
        if member.due().subscribed_topic_names is not None:
            wholes.append(number)
        member.answer()
    assert wholes == [10, 20]
    for _ in range(9):
        member.beat()
    member.beat(assigned=[0])
    member.apply(ChangeKind.ASSIGN, T0)


def test_a_pattern_is_taken_back_although_a_response_was_lost() -> None:
    member = Member(TopicSubscription(frozenset(), "^t.*"))
    member.due()
    member.answer(assigned=[])
    member.core.resubscribe(TopicSubscription(frozenset({"u"})), member.now_ms)
    member.due()
    member.core.failed(member.now_ms, 0)
    assert member.due().subscribed_topic_regex == ""


def test_a_coordinator_that_moves_is_told_everything() -> None:
    member = joined(0)
    member.now_ms += HEARTBEAT_MS
    member.due()
    error = member.answer(ErrorCode.NOT_COORDINATOR)
    assert error is not None
    assert error.code == ErrorCode.NOT_COORDINATOR
    member.core.failed(member.now_ms, 0)
    assert owned(member.due()) == [0]
    assert (member.core.owned, member.core.change) == ({T0}, None)


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_fenced_member_loses_its_partitions_and_joins_anew(code: ErrorCode) -> None:
    member = joined(0)
    member.beat(code)
    assert member.core.identity() is None
    member.now_ms += HEARTBEAT_MS
    assert member.send() is None, "it joins when the application knows of the loss"
    member.apply(ChangeKind.LOSE, T0)
    again = member.due()
    assert (again.member_epoch, again.topic_partitions, again.subscribed_topic_names) == (0, [], ["t"])


def test_a_member_fenced_amid_a_revocation_loses_the_rest() -> None:
    member = joined(0, 1)
    member.beat(assigned=[0])
    revocation = member.core.change
    assert revocation is not None
    member.beat(ErrorCode.FENCED_MEMBER_EPOCH)
    member.core.applied(revocation, member.now_ms)
    member.apply(ChangeKind.LOSE, T0)
    assert member.due().member_epoch == 0


def test_a_refused_commit_of_the_current_epoch_ends_the_membership() -> None:
    member = joined(0)
    identity = member.core.identity()
    assert identity is not None
    member.core.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, identity._replace(generation=0), member.now_ms)
    assert member.core.owned == {T0}
    member.core.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, identity, member.now_ms)
    assert member.core.identity() is None
    member.apply(ChangeKind.LOSE, T0)


def test_a_commit_with_an_old_epoch_hastens_the_next_heartbeat() -> None:
    member = joined(0)
    identity = member.core.identity()
    assert identity is not None
    assert member.send() is None
    member.core.commit_refused(ErrorCode.STALE_MEMBER_EPOCH, identity, member.now_ms)
    member.due()
    member.answer(epoch=7)
    assert member.core.identity() == CommitterIdentity(7, "m", None)


@pytest.mark.parametrize(("instance_id", "epoch"), [("", -1), ("i", -2)])
def test_without_polls_the_member_leaves_and_joins_with_the_next_poll(instance_id: str, epoch: int) -> None:
    member = joined(0, group_instance_id=instance_id)
    member.now_ms = POLL_MS
    assert member.due().member_epoch == epoch
    assert member.core.identity() is None, "its commits are refused from now on"
    member.answer(epoch=epoch)
    member.now_ms += POLL_MS
    assert member.send() is None
    assert member.core.wake_ms() == float("inf")
    assert member.core.polled(member.now_ms)
    member.apply(ChangeKind.LOSE, T0)
    assert member.due().member_epoch == 0


def test_a_poll_before_the_leave_is_answered() -> None:
    member = joined(0)
    member.now_ms = POLL_MS
    assert member.due().member_epoch == -1
    member.core.polled(member.now_ms)
    member.apply(ChangeKind.LOSE, T0)
    member.core.failed(member.now_ms, 10)
    assert member.due().member_epoch == 0


def test_partitions_of_unknown_topics_wait_for_their_names() -> None:
    member = Member()
    member.due()
    other = b"u".ljust(16, b"-")
    assignment = Assignment([TopicPartitions(TOPIC, [0]), TopicPartitions(other, [0])])
    response = ConsumerGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=100, assignment=assignment)
    member.core.answered(member.sent, response, 0)
    assert member.core.unknown_topics == {other}
    member.apply(ChangeKind.ASSIGN, T0)
    member.core.learn_topics({other: "u"}, 0)
    member.apply(ChangeKind.ASSIGN, TopicPartition("u", 0))
    assert not member.core.unknown_topics


def test_a_pattern_and_its_replacement_by_names() -> None:
    member = Member(TopicSubscription(frozenset(), "^t.*"))
    first = member.due()
    assert (first.subscribed_topic_regex, first.subscribed_topic_names) == ("^t.*", [])
    member.answer(assigned=[])
    member.core.resubscribe(TopicSubscription(frozenset({"u"})), member.now_ms)
    second = member.due()
    assert (second.subscribed_topic_regex, second.subscribed_topic_names) == ("", ["u"])


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ],
)
def test_errors_that_do_not_go_away_are_raised(code: ErrorCode) -> None:
    member = joined(0)
    member.beat(code)
    assert isinstance(member.core.failure, KafkaError)
    assert member.core.failure.code == code
    member.apply(ChangeKind.LOSE, T0)
    member.now_ms += HEARTBEAT_MS
    assert member.send() is None
    assert member.core.leave_request() is None
