"""Commits of a member, answered by a broker whose every answer is written by the test."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_broker import HANG_UP, FakeBroker

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, GroupConfig
from sskafka.client.errors import CommitFailedError
from sskafka.client.group.assignors import encode_assignment
from sskafka.client.group.classic_membership import ClassicMembership
from sskafka.client.group.member_offsets import MemberOffsets, OffsetToCommit
from sskafka.client.group.membership import ChangeKind, MembershipChange, TopicSubscription
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FAST = ConnectionConfig(retry_backoff_ms=1, retry_backoff_max_ms=5, default_api_timeout_ms=2_000)
T0 = TopicPartition("t", 0)
OFFSETS = {T0: OffsetToCommit(7, 3)}


def member(strategy: str = "cooperative-sticky") -> ClassicMembership:
    """A member of generation 1 that owns the partition."""
    config = GroupConfig(group_id="g", partition_assignment_strategy=strategy)
    membership = ClassicMembership(config, TopicSubscription(frozenset({"t"})), 0)
    join(membership, generation=1)
    return membership


def join(membership: ClassicMembership, generation: int) -> None:
    (strategy,) = membership.config.strategies
    joined = JoinGroupResponse(generation_id=generation, protocol_name=strategy, leader="x", member_id="m")
    assert membership.next_request(0) is not None
    membership.answered(JoinGroupRequest(), joined, 0)
    membership.answered(SyncGroupRequest(), SyncGroupResponse(assignment=encode_assignment([T0])), 0)
    assert membership.change is not None
    membership.applied(membership.change, 0)


def answers(codes: list[object], on_request: list[Callable[[], None]]) -> Callable[[OffsetCommitRequest, int], Any]:
    """Answer with one code after the other, and call one function after the other before."""
    left, calls = list(codes), list(on_request)

    def answer(request: OffsetCommitRequest, version: int) -> Any:
        if calls:
            calls.pop(0)()
        code = left.pop(0)
        if code is HANG_UP:
            return HANG_UP
        assert isinstance(code, ErrorCode)
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic("t", partitions=[_partition(code)])])

    return answer


def _partition(code: ErrorCode) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(0, code)


def commit(
    codes: list[object],
    work: Callable[[MemberOffsets], Awaitable[None]],
    on_refusal: Callable[[], None] = lambda: None,
    on_request: list[Callable[[], None]] | None = None,
) -> list[OffsetCommitRequest]:
    """Run `work` and return the commits that the broker saw."""

    async def run() -> list[OffsetCommitRequest]:
        coordinator = FindCoordinatorResponse(node_id=1)
        answered = {
            FindCoordinatorRequest: lambda request, version: coordinator,
            OffsetCommitRequest: answers(codes, on_request or []),
        }
        async with FakeBroker(answered) as broker, Cluster(broker.bootstrap, FAST) as cluster:
            await work(MemberOffsets(cluster, "g", on_refusal))
            return broker.seen(OffsetCommitRequest)

    return asyncio.run(run())


def test_a_member_commits_with_its_generation() -> None:
    (request,) = commit([ErrorCode.NONE], lambda offsets: offsets.commit(member(), OFFSETS))
    assert (request.generation_id_or_member_epoch, request.member_id) == (1, "m")
    (partition,) = request.topics[0].partitions
    assert (partition.committed_offset, partition.committed_leader_epoch) == (7, 3)


def test_without_a_membership_the_commit_names_no_member() -> None:
    (request,) = commit([ErrorCode.NONE], lambda offsets: offsets.commit(None, OFFSETS))
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")


@pytest.mark.parametrize("trouble", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, HANG_UP])
def test_a_coordinator_that_moves_or_fails_is_found_again(trouble: object) -> None:
    requests = commit([trouble, ErrorCode.NONE], lambda offsets: offsets.commit(member(), OFFSETS))
    assert len(requests) == 2


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_the_commit_of_a_removed_member_is_refused_once_and_for_all(code: ErrorCode) -> None:
    membership, refusals = member(), []

    async def work(offsets: MemberOffsets) -> None:
        for _ in range(2):
            with pytest.raises(CommitFailedError) as refused:
                await offsets.commit(membership, OFFSETS)
            assert not refused.value.retriable
        assert membership.change == MembershipChange(ChangeKind.LOSE, frozenset({T0}))

    requests = commit([code], work, lambda: refusals.append(code))
    assert len(requests) == 1, "the second commit is refused without a request"
    assert refusals == [code]


@pytest.mark.parametrize("code", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION])
def test_a_commit_amid_a_rebalance_is_repeated_with_the_new_generation(code: ErrorCode) -> None:
    """The coordinator may have begun the generation while its response to JoinGroup is on the way."""
    membership = member()
    membership.rejoin(0)

    def begin_generation() -> None:
        joined = JoinGroupResponse(generation_id=2, protocol_name="cooperative-sticky", leader="x", member_id="m")
        membership.answered(JoinGroupRequest(), joined, 0)

    requests = commit([code, ErrorCode.NONE], lambda offsets: offsets.commit(membership, OFFSETS), begin_generation)
    assert [request.generation_id_or_member_epoch for request in requests] == [1, 2]


@pytest.mark.parametrize("ends_by", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_commit_is_not_repeated_after_its_partition_was_revoked_or_lost_and_assigned_again(
    ends_by: ErrorCode,
) -> None:
    """Another member may have committed a later offset in between."""
    membership = member("range")

    def lose_and_regain() -> None:
        membership.answered(HeartbeatRequest(), HeartbeatResponse(error_code=ends_by), 0)
        assert membership.change is not None
        membership.applied(membership.change, 0)
        join(membership, generation=2)
        assert membership.owned == {T0}

    async def work(offsets: MemberOffsets) -> None:
        with pytest.raises(CommitFailedError) as refused:
            await offsets.commit(membership, OFFSETS)
        assert not refused.value.retriable
        await offsets.commit(membership, OFFSETS)

    codes: list[object] = [ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]
    requests = commit(codes, work, on_request=[lose_and_regain])
    assert [request.generation_id_or_member_epoch for request in requests] == [1, 2]


def test_a_commit_of_partitions_that_are_not_owned_is_not_repeated_with_a_new_generation() -> None:
    async def work(offsets: MemberOffsets) -> None:
        with pytest.raises(CommitFailedError) as refused:
            await offsets.commit(member(), {TopicPartition("t", 1): OffsetToCommit(1)})
        assert refused.value.code == ErrorCode.REBALANCE_IN_PROGRESS

    assert len(commit([ErrorCode.REBALANCE_IN_PROGRESS], work)) == 1


def test_other_errors_are_raised_as_they_are() -> None:
    async def work(offsets: MemberOffsets) -> None:
        with pytest.raises(KafkaError) as refused:
            await offsets.commit(member(), OFFSETS)
        assert refused.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    commit([ErrorCode.GROUP_AUTHORIZATION_FAILED], work)
