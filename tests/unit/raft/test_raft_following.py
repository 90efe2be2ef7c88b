import pytest
from lone_node import LoneNode, ends, follower
from memory_log import MemoryLog, batch

from sskafka.model.errors import ErrorCode
from sskafka.raft.election_state import ElectionState
from sskafka.raft.errors import CommittedRecordsLostError
from sskafka.raft.messages import (
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from sskafka.raft.ready import FollowerAppend, SnapshotChunk


def response(*batches: object, high_watermark: int = 0, epoch: int = 1, **fields: object) -> FetchResponse:
    return FetchResponse(ErrorCode.NONE, 2, epoch, high_watermark, batches=tuple(batches), **fields)


def error(code: ErrorCode, leader_id: int = -1, epoch: int = 1) -> FetchResponse:
    return FetchResponse(code, leader_id, epoch)


def chunk(position: int, data: bytes, size: int = 4, at: tuple[int, int] = (5, 1)) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(ErrorCode.NONE, 2, 1, ends(*at), size, position, data)


def test_batches_are_appended_and_the_next_fetch_continues_after_them() -> None:
    lone = follower()
    ready = lone.answer(response(batch(0, 1), batch(1, 1), high_watermark=1))
    assert ready.append == FollowerAppend((batch(0, 1), batch(1, 1)))
    assert ready.high_watermark == 1
    request = lone.sent_to(2)
    assert isinstance(request, FetchRequest)
    assert request.log_end == ends(2, 1)


def test_the_next_fetch_waits_for_the_flush() -> None:
    lone = follower()
    lone.flushes = False
    ready = lone.answer(response(batch(0, 1)))
    assert ready.flush is not None
    assert lone.at(1).requests == []
    lone.carry_out(lone.node.flushed(ready.flush, 2))
    assert lone.sent_to(2).fetch_offset == 1


def test_a_flush_from_before_a_truncation_is_ignored() -> None:
    lone = follower(log=MemoryLog(batch(0, 1)))
    lone.flushes = False
    first = lone.answer(response(batch(1, 1))).flush
    lone.carry_out(lone.node.flushed(first, 0))
    truncation = lone.answer(response(diverging=ends(1, 1)))
    assert truncation.truncate_to == 1
    lone.carry_out(lone.node.flushed(first, 0))
    assert lone.sent_to(2) is None
    lone.carry_out(lone.node.flushed(truncation.flush, 0))
    assert lone.sent_to(2).fetch_offset == 1


def test_the_high_watermark_does_not_exceed_the_log_end() -> None:
    assert follower().answer(response(batch(0, 1), high_watermark=50)).high_watermark == 1


def test_the_high_watermark_never_decreases() -> None:
    lone = follower()
    lone.answer(response(batch(0, 1), high_watermark=1))
    assert lone.answer(response(batch(1, 1), high_watermark=0)).high_watermark is None
    assert lone.node.high_watermark == 1


@pytest.mark.parametrize(
    "batches",
    [
        [batch(1, 1)],
        [batch(0, 2)],
        [batch(0, 1), batch(2, 1)],
        [batch(0, 1), batch(1, 0)],
        [batch(0, 1, count=0)],
    ],
    ids=["gap", "epoch of the future", "gap between", "epoch goes back", "empty"],
)
def test_batches_that_do_not_continue_the_log_are_ignored(batches: list) -> None:
    lone = follower()
    ready = lone.answer(response(*batches))
    assert ready.append is None
    assert ready.requests == [], "and the leader is not asked again at once"


def test_a_response_counts_once() -> None:
    lone = follower()
    fetched = lone.ready
    lone.answer(response(batch(0, 1)))
    lone.ready = fetched
    assert lone.answer(response(batch(0, 1))).append is None


def test_a_response_of_a_former_leader_is_ignored() -> None:
    lone = follower()
    fetched = lone.ready
    lone.node.state.log_view.refresh()
    lone.node.state.become_follower(3, 2, 0)
    lone.ready = fetched
    assert lone.answer(response(batch(0, 1))).append is None


def test_truncation_below_the_high_watermark_stops_the_node() -> None:
    lone = follower()
    lone.answer(response(batch(0, 1), high_watermark=1))
    with pytest.raises(CommittedRecordsLostError):
        lone.answer(response(diverging=ends(0, 0)))


def test_a_later_epoch_in_a_response_is_followed() -> None:
    lone = follower()
    lone.answer(error(ErrorCode.FENCED_LEADER_EPOCH, leader_id=3, epoch=4))
    assert lone.stored == ElectionState(4, 3, -1, 3, 4)
    assert lone.sent_to(3) is not None


def test_a_node_that_is_not_the_leader_is_no_longer_followed() -> None:
    lone = follower()
    lone.answer(error(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert lone.node.role_name == "Unattached"
    lone = follower()
    lone.answer(error(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=3))
    assert lone.sent_to(3) is not None


def test_a_leader_in_an_older_epoch_is_retried_until_the_timeout() -> None:
    lone = follower(epoch=4)
    assert lone.answer(error(ErrorCode.UNKNOWN_LEADER_EPOCH, epoch=2)).requests == []
    assert lone.node.wake_at_ms(0) == 20
    assert lone.at(20).requests != []
    lone.at(2000)
    assert lone.node.role_name == "Prospective"


def test_failures_increase_the_backoff() -> None:
    lone = follower()
    waits = []
    for _ in range(7):
        lone.fail(2)
        waits.append(lone.node.wake_at_ms(lone.now_ms) - lone.now_ms)
        lone.at(lone.now_ms + waits[-1])
    assert waits == [20, 40, 80, 160, 320, 320, 320]


def test_a_request_without_response_times_out() -> None:
    lone = LoneNode(stored=ElectionState(1, 2), node_id=9)
    assert lone.sent_to(2) is not None
    lone.at(2000)
    assert lone.node.role_name == "Unattached", "an observer looks for the leader elsewhere"
    assert lone.sent_to(1) is not None


def test_an_observer_tries_one_voter_after_another() -> None:
    observer = LoneNode(node_id=9)
    asked = []
    for _ in range(4):
        asked.append(observer.ready.requests[0].to)
        observer.answer(error(ErrorCode.NOT_LEADER_OR_FOLLOWER, epoch=0), source=asked[-1])
        if not observer.ready.requests:
            observer.at(observer.node.wake_at_ms(observer.now_ms))
    assert asked == [1, 2, 3, 1]


def test_a_snapshot_is_downloaded_in_chunks() -> None:
    lone = follower()
    lone.answer(response(snapshot_id=ends(5, 1)))
    assert lone.sent_to(2) == FetchSnapshotRequest(1, 1, ends(5, 1), 0, 1048576)
    ready = lone.answer(chunk(0, b"ab"))
    assert ready.snapshot_chunk == SnapshotChunk(ends(5, 1), 0, b"ab")
    assert ready.installed_snapshot is None
    ready = lone.answer(chunk(2, b"cd"))
    assert (ready.snapshot_chunk, ready.installed_snapshot) == (SnapshotChunk(ends(5, 1), 2, b"cd"), ends(5, 1))
    assert ready.high_watermark == 5
    assert lone.sent_to(2).log_end == ends(5, 1)


@pytest.mark.parametrize(
    "bad",
    [chunk(1, b"bc"), chunk(0, b""), chunk(0, b"abcde"), chunk(0, b"ab", at=(6, 1))],
    ids=["gap", "nothing", "too much", "other snapshot"],
)
def test_chunks_at_a_wrong_position_are_ignored(bad: FetchSnapshotResponse) -> None:
    lone = follower()
    lone.answer(response(snapshot_id=ends(5, 1)))
    assert lone.answer(bad).snapshot_chunk is None


def test_a_deleted_snapshot_is_not_requested_again() -> None:
    lone = follower()
    lone.answer(response(snapshot_id=ends(5, 1)))
    lone.answer(FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, 2, 1))
    lone.at(20)
    assert isinstance(lone.sent_to(2), FetchRequest)


def test_a_snapshot_below_the_high_watermark_stops_the_node() -> None:
    lone = follower()
    lone.answer(response(batch(0, 1), batch(1, 1), high_watermark=2))
    with pytest.raises(CommittedRecordsLostError):
        lone.answer(response(snapshot_id=ends(1, 1)))


def test_a_log_without_the_end_of_its_snapshot_is_rejected() -> None:
    log = MemoryLog(batch(0, 2), batch(1, 2))
    log.snapshots = {ends(5, 1): b"snapshot"}
    with pytest.raises(AssertionError, match="does not contain"):
        LoneNode(log)


def test_the_epoch_of_the_log_counts_if_the_stored_one_is_older() -> None:
    assert LoneNode(MemoryLog(batch(0, 6)), ElectionState(4, 2, 2)).stored == ElectionState(epoch=6)


def test_a_duplicate_end_of_epoch_changes_nothing_more() -> None:
    lone = follower()
    lone.ask(EndQuorumEpochRequest(2, 1, (3, 1)))
    before = lone.stored
    lone.ask(EndQuorumEpochRequest(2, 1, (3, 1)))
    assert (lone.stored, lone.node.wake_at_ms(0)) == (before, 500)
