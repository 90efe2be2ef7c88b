import pytest
from lone_node import LoneNode, ends, fetch, leader
from memory_log import MemoryLog, batch

from sskafka.model.errors import ErrorCode
from sskafka.raft.errors import NotLeaderError
from sskafka.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoteResponse,
)
from sskafka.raft.progress import OBSERVER_SESSION_MS
from sskafka.raft.ready import FlushPoint, LeaderAppend, LeaderChange, LogRead, SnapshotRead


def begin(error: ErrorCode = ErrorCode.NONE) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error, 1, 1)


def test_an_epoch_starts_with_its_leader_change() -> None:
    lone = leader(MemoryLog(batch(0, 1)))
    change = LeaderChange(1, (1, 2, 3), (1, 2))
    assert lone.ready.append == LeaderAppend(1, 2, 1, change)
    assert lone.sent_to(2) == lone.sent_to(3) == BeginQuorumEpochRequest(1, 2)


def test_records_of_older_epochs_are_committed_only_by_the_leader_change() -> None:
    lone = leader(MemoryLog(batch(0, 1), batch(1, 1)))
    lone.ask(fetch(lone, 2, 1))
    assert lone.ready.high_watermark is None
    lone.ask(fetch(lone, 3, 2))
    assert lone.ready.high_watermark == 3


def test_the_leader_counts_with_its_flushed_offset() -> None:
    lone = leader(flushes=False)
    lone.ask(fetch(lone, 1, 1))
    assert lone.ready.high_watermark is None
    assert lone.carry_out(lone.node.flushed(FlushPoint(1, 0), 0)).high_watermark == 1


def test_one_fsync_may_be_reported_for_several() -> None:
    lone = leader(flushes=False)
    lone.propose()
    lone.propose()
    lone.ask(fetch(lone, 3, 1))
    assert lone.carry_out(lone.node.flushed(FlushPoint(3, 0), 0)).high_watermark == 3


def test_observers_do_not_count() -> None:
    lone = leader()
    lone.ask(fetch(lone, 1, 1, replica_id=9))
    assert lone.node.high_watermark == 0
    assert lone.node.progress.observers[9].log_end_offset == 1


def test_silent_observers_are_forgotten() -> None:
    lone = leader()
    lone.ask(fetch(lone, 1, 1, replica_id=9))
    lone.now_ms += OBSERVER_SESSION_MS + 1
    lone.node.progress.heard_ms = {2: lone.now_ms, 3: lone.now_ms}
    lone.ask(fetch(lone, 1, 1, replica_id=10))
    assert set(lone.node.progress.observers) == {10}


def test_a_fetch_at_the_log_end_waits_for_a_record() -> None:
    lone = leader()
    lone.ask(fetch(lone, 1, 1))
    assert lone.ask(fetch(lone, 1, 1, high_watermark=1)) is None
    (answer,) = lone.propose().answers
    assert answer.read == LogRead(1, 100)


def test_a_fetch_at_the_log_end_waits_for_the_high_watermark() -> None:
    lone = leader(flushes=False)
    assert lone.ask(fetch(lone, 1, 1)) is None
    (answer,) = lone.carry_out(lone.node.flushed(FlushPoint(1, 0), 0)).answers
    assert answer.response.high_watermark == 1


def test_a_fetch_at_the_log_end_times_out() -> None:
    lone = leader()
    lone.ask(fetch(lone, 1, 1))
    lone.ask(fetch(lone, 1, 1, high_watermark=1))
    assert lone.at(1499).answers == []
    (answer,) = lone.at(1500).answers
    assert answer.read is None


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_other_epochs_are_rejected(epoch: int, error: ErrorCode) -> None:
    lone = leader()
    assert lone.ask(fetch(lone, 0, 0, epoch=epoch)) == FetchResponse(error, 1, 1)
    assert lone.ask(FetchSnapshotRequest(2, epoch, ends(1, 1), 0, 10)).error is error


def test_a_node_that_does_not_lead_rejects_fetches() -> None:
    lone = LoneNode()
    expected = FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 0)
    assert lone.ask(fetch(lone, 0, 0)) == expected
    with pytest.raises(NotLeaderError):
        lone.propose()


@pytest.mark.parametrize(("offset", "last_epoch", "replica_id"), [(-1, 0, 2), (0, -1, 2), (0, 0, 1)])
def test_invalid_fetches_are_rejected(offset: int, last_epoch: int, replica_id: int) -> None:
    lone = leader()
    assert lone.ask(fetch(lone, offset, last_epoch, replica_id)).error is ErrorCode.INVALID_REQUEST


def test_a_proposal_of_another_epoch_is_rejected() -> None:
    lone = leader()
    with pytest.raises(NotLeaderError, match="the leader of epoch 1 is 1"):
        lone.node.propose(b"decided before the election", 1, 0, 0)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"), [(9, 2, (3, 2)), (4, 3, (3, 2)), (2, 1, (1, 1)), (5, 0, (0, 0))]
)
def test_the_leader_returns_the_diverging_epoch(offset: int, last_epoch: int, diverging: tuple[int, int]) -> None:
    lone = leader(MemoryLog(batch(0, 1), batch(1, 2), batch(2, 2), batch(3, 4)))
    assert lone.ask(fetch(lone, offset, last_epoch)).diverging == ends(*diverging)
    assert lone.node.progress.replicas[2].log_end_offset == -1, "and it does not count as having them"


@pytest.mark.parametrize(("offset", "last_epoch"), [(0, 0), (4, 2), (5, 2), (6, 1)])
def test_a_fetch_before_the_log_start_returns_the_snapshot_id(offset: int, last_epoch: int) -> None:
    lone = leader(MemoryLog(batch(5, 3), start=ends(5, 3)))
    assert lone.ask(fetch(lone, offset, last_epoch)).snapshot_id == ends(5, 3)


def test_snapshots_are_served_by_position() -> None:
    lone = leader(MemoryLog(batch(5, 3), start=ends(5, 3)))
    epoch = lone.node.epoch
    response = lone.ask(FetchSnapshotRequest(2, epoch, ends(5, 3), 4, 2))
    assert response == FetchSnapshotResponse(ErrorCode.NONE, 1, epoch, ends(5, 3), size=8, position=4)
    assert lone.ready.answers[0].read == SnapshotRead(ends(5, 3), 4, 2)
    past_end = lone.ask(FetchSnapshotRequest(2, epoch, ends(5, 3), 8, 2))
    assert past_end.error is ErrorCode.POSITION_OUT_OF_RANGE
    unknown = lone.ask(FetchSnapshotRequest(2, epoch, ends(4, 3), 0, 2))
    assert unknown.error is ErrorCode.SNAPSHOT_NOT_FOUND


@pytest.mark.parametrize("max_bytes", [-1, 0])
def test_snapshot_fetches_of_no_bytes_are_rejected(max_bytes: int) -> None:
    lone = leader(MemoryLog(batch(5, 3), start=ends(5, 3)))
    response = lone.ask(FetchSnapshotRequest(2, lone.node.epoch, ends(5, 3), 0, max_bytes))
    assert response.error is ErrorCode.INVALID_REQUEST
    assert lone.ready.answers[0].read is None


def test_begin_epoch_is_repeated_until_it_is_acknowledged() -> None:
    lone = leader()
    lone.answer(begin(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert isinstance(lone.at(1020).requests[0].request, BeginQuorumEpochRequest)
    lone.answer(begin())
    assert lone.sent_to(2) is None
    lone.at(2019)
    assert lone.sent_to(2) is None
    lone.at(2020)
    assert lone.sent_to(2) == BeginQuorumEpochRequest(1, 1), "acknowledged, but it never fetched"


def test_an_isolated_leader_resigns() -> None:
    lone = leader()
    lone.now_ms = 2000
    lone.ask(fetch(lone, 1, 1))
    lone.at(4999)
    assert lone.node.role_name == "Leader"
    lone.at(5000)
    assert lone.node.role_name == "Resigned"
    assert lone.sent_to(2) == EndQuorumEpochRequest(1, 1, (2, 3))


def test_a_leader_with_fetches_of_a_minority_resigns() -> None:
    lone = LoneNode(voters=(1, 2, 3, 4, 5))
    lone.at(1000)
    for _ in range(2):
        requests = lone.ready
        for source in (2, 3):
            lone.ready = requests
            epoch = lone.node.epoch
            lone.answer(_granted(epoch), source)
    assert lone.node.role_name == "Leader"
    for now_ms in range(1500, 4001, 500):
        lone.now_ms = now_ms
        lone.ask(fetch(lone, 1, 1))
    assert lone.node.role_name == "Resigned"


def _granted(epoch: int) -> VoteResponse:
    return VoteResponse(ErrorCode.NONE, -1, epoch, vote_granted=True)


def test_snapshot_fetches_keep_a_leader_too() -> None:
    lone = leader(MemoryLog(batch(5, 3), start=ends(5, 3)))
    lone.now_ms = 3000
    lone.ask(FetchSnapshotRequest(2, lone.node.epoch, ends(5, 3), 0, 2))
    lone.at(4500)
    assert lone.node.role_name == "Leader"


def test_preferred_successors_are_ordered_by_log_end() -> None:
    lone = leader()
    lone.propose()
    lone.ask(fetch(lone, 1, 1, replica_id=2))
    lone.ask(fetch(lone, 2, 1, replica_id=3))
    lone.carry_out(lone.node.shutdown(lone.now_ms))
    assert lone.sent_to(2) == EndQuorumEpochRequest(1, 1, (3, 2))
    ended = lone.ready
    assert not lone.node.is_shut_down
    for source in (2, 3):
        lone.ready = ended
        lone.answer(EndQuorumEpochResponse(ErrorCode.NONE, -1, 1), source)
    assert lone.node.is_shut_down
    assert lone.node.wake_at_ms(lone.now_ms) is None


def test_a_resigned_leader_does_not_answer_as_leader() -> None:
    lone = leader()
    lone.carry_out(lone.node.resign(lone.now_ms))
    assert lone.ask(fetch(lone, 1, 1)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(NotLeaderError):
        lone.propose()


def test_progress_shows_caught_up_replicas() -> None:
    lone = leader()
    replica = lone.node.progress.replicas[2]
    lone.ask(fetch(lone, 1, 1))
    assert (replica.last_fetch_ms, replica.last_caught_up_ms) == (1000, 1000)
    lone.now_ms = 1200
    lone.propose()
    lone.now_ms = 1300
    lone.ask(fetch(lone, 1, 1))
    assert (replica.last_fetch_ms, replica.last_caught_up_ms) == (1300, 1000)
    lone.propose()
    lone.now_ms = 1400
    lone.ask(fetch(lone, 2, 1))
    assert replica.last_caught_up_ms == 1300, "it has what the leader had when it asked before"
    lone.ask(fetch(lone, 3, 1))
    assert replica.last_caught_up_ms == 1400


def test_the_log_is_not_queried_after_a_change_in_the_same_event() -> None:
    lone = leader()
    lone.node.state.log_view.invalidate()
    with pytest.raises(AssertionError, match="has not made yet"):
        lone.node.state.log_view.end  # noqa: B018


def test_requests_contain_the_state_of_the_follower() -> None:
    assert FetchRequest(2, 1, 5, 3, 4, 500, 100).log_end == ends(5, 3)
