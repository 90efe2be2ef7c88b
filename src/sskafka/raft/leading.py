"""The leader role: answer fetches, advance the high watermark, announce itself, and resign without a majority."""

from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.raft.errors import NotLeaderError
from sskafka.raft.log_view import SnapshotId
from sskafka.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from sskafka.raft.node_state import NodeState
from sskafka.raft.ready import Answer, LeaderAppend, LogRead, ReplyTo, SnapshotRead
from sskafka.raft.roles import Leader, ParkedFetch, Resigned


class Leading:
    __slots__ = ("state",)

    def __init__(self, state: NodeState) -> None:
        self.state = state

    # --- fetches ----------------------------------------------------------------------------------

    def fetch(self, request: FetchRequest, reply_to: ReplyTo, now_ms: int) -> None:
        error = self._fetch_error(request)
        role = self.state.role
        if error is ErrorCode.NONE and isinstance(role, Leader):
            role.progress.heard_from(request.replica_id, now_ms, self.state.timing.begin_quorum_interval_ms)
            self._answer_fetch(role, request, reply_to, now_ms)
        else:
            self._answer(reply_to, FetchResponse(error, self.state.leader_hint, self.state.epoch))

    def _fetch_error(self, request: FetchRequest) -> ErrorCode:
        if request.fetch_offset < 0 or request.last_fetched_epoch < 0:
            return ErrorCode.INVALID_REQUEST
        return self._leader_error(request.leader_epoch, request.replica_id)

    def _leader_error(self, leader_epoch: int, replica_id: int) -> ErrorCode:
        if leader_epoch < self.state.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if leader_epoch > self.state.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not isinstance(self.state.role, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.INVALID_REQUEST if replica_id == self.state.node_id else ErrorCode.NONE

    def _answer_fetch(self, role: Leader, request: FetchRequest, reply_to: ReplyTo, now_ms: int) -> None:
        view = self.state.log_view
        if view.contains(request.log_end) and request.fetch_offset >= view.log.start_offset:
            self._answer_valid_fetch(role, request, reply_to, now_ms)
            return
        known = view.log.end_offset_for_epoch(request.last_fetched_epoch)
        if request.fetch_offset < view.log.start_offset or known is None:
            self._answer_with_snapshot(reply_to)
        else:
            self._answer(reply_to, self._fetch_response(diverging=known))

    def _answer_with_snapshot(self, reply_to: ReplyTo) -> None:
        snapshot_id = self.state.log_view.log.latest_snapshot_id()
        assert snapshot_id is not None, "the log does not start at 0 and has no snapshot"
        self._answer(reply_to, self._fetch_response(snapshot_id=snapshot_id))

    def _answer_valid_fetch(self, role: Leader, request: FetchRequest, reply_to: ReplyTo, now_ms: int) -> None:
        end_offset = self.state.log_view.end.offset
        role.progress.fetched(request.replica_id, request.fetch_offset, end_offset, now_ms)
        self.maybe_advance_high_watermark(role)
        if request.fetch_offset < end_offset:
            self._answer_with_records(request, reply_to)
        elif request.high_watermark < self.state.high_watermark or request.max_wait_ms <= 0:
            self._answer(reply_to, self._fetch_response())
        else:
            wait_ms = min(request.max_wait_ms, self.state.timing.fetch_wait_ms)
            role.parked[reply_to] = ParkedFetch(request, reply_to, now_ms + wait_ms)

    def _answer_with_records(self, request: FetchRequest, reply_to: ReplyTo) -> None:
        max_bytes = min(request.max_bytes, self.state.timing.fetch_max_bytes)
        read = LogRead(request.fetch_offset, max_bytes)
        self.state.ready.answers.append(Answer(reply_to, self._fetch_response(), read))

    def _fetch_response(
        self, *, diverging: SnapshotId | None = None, snapshot_id: SnapshotId | None = None
    ) -> FetchResponse:
        return FetchResponse(
            error=ErrorCode.NONE,
            leader_id=self.state.node_id,
            leader_epoch=self.state.epoch,
            high_watermark=self.state.high_watermark,
            diverging=diverging,
            snapshot_id=snapshot_id,
        )

    def _answer(self, reply_to: ReplyTo, response: FetchResponse | FetchSnapshotResponse) -> None:
        self.state.ready.answers.append(Answer(reply_to, response))

    # --- parked fetches ---------------------------------------------------------------------------

    def _release_for_records(self, role: Leader) -> None:
        for parked in role.parked.values():
            self._answer_with_records(parked.request, parked.reply_to)
        role.parked.clear()

    def _release_for_high_watermark(self, role: Leader) -> None:
        behind = [
            parked for parked in role.parked.values() if parked.request.high_watermark < self.state.high_watermark
        ]
        self._release(role, behind)

    def _release_expired(self, role: Leader, now_ms: int) -> None:
        self._release(role, [parked for parked in role.parked.values() if parked.deadline_ms <= now_ms])

    def _release(self, role: Leader, released: list[ParkedFetch]) -> None:
        for parked in released:
            del role.parked[parked.reply_to]
            self._answer(parked.reply_to, self._fetch_response())

    # --- snapshots --------------------------------------------------------------------------------

    def fetch_snapshot(self, request: FetchSnapshotRequest, reply_to: ReplyTo, now_ms: int) -> None:
        state = self.state
        size = state.log_view.log.snapshot_size(request.snapshot_id)
        error = self._snapshot_error(request, size)
        response = FetchSnapshotResponse(error, state.leader_hint, state.epoch, request.snapshot_id)
        role = state.role
        if error is not ErrorCode.NONE or size is None or not isinstance(role, Leader):
            self._answer(reply_to, response)
            return
        role.progress.heard_from(request.replica_id, now_ms, state.timing.begin_quorum_interval_ms)
        response = FetchSnapshotResponse(error, state.node_id, state.epoch, request.snapshot_id, size, request.position)
        max_bytes = min(request.max_bytes, state.timing.fetch_snapshot_max_bytes)
        read = SnapshotRead(request.snapshot_id, request.position, max_bytes)
        state.ready.answers.append(Answer(reply_to, response, read))

    def _snapshot_error(self, request: FetchSnapshotRequest, size: int | None) -> ErrorCode:
        error = self._leader_error(request.leader_epoch, request.replica_id)
        if error is not ErrorCode.NONE:
            return error
        if request.max_bytes <= 0:
            return ErrorCode.INVALID_REQUEST
        if size is None:
            return ErrorCode.SNAPSHOT_NOT_FOUND
        return ErrorCode.NONE if 0 <= request.position < size else ErrorCode.POSITION_OUT_OF_RANGE

    # --- commit -----------------------------------------------------------------------------------

    def propose(self, records: Buffer, record_count: int, epoch: int) -> None:
        role = self.state.role
        if not isinstance(role, Leader) or epoch != self.state.epoch:
            raise NotLeaderError(self.state.leader_hint, self.state.epoch)
        assert record_count > 0, "a proposal must have records"
        self.state.append(LeaderAppend(self.state.log_view.end.offset, epoch, record_count, records))
        self._release_for_records(role)

    def maybe_advance_high_watermark(self, role: Leader) -> None:
        offset = self.committed_offset(role)
        if offset > role.epoch_start_offset and self.state.advance_high_watermark(offset):
            self._release_for_high_watermark(role)

    def committed_offset(self, role: Leader) -> int:
        return role.progress.majority_offset(self.state.flushed_offset)

    # --- start and end of the epoch ---------------------------------------------------------------

    def begin_request(self) -> BeginQuorumEpochRequest:
        return BeginQuorumEpochRequest(self.state.node_id, self.state.epoch)

    def handle_begin_response(self, voter_id: int, response: BeginQuorumEpochResponse, now_ms: int) -> None:
        role = self.state.role
        if response.error is ErrorCode.NONE and isinstance(role, Leader):
            self.state.peers.succeeded(voter_id)
            due_ms = now_ms + self.state.timing.begin_quorum_interval_ms
            role.progress.replicas[voter_id].begin_due_ms = due_ms
        else:
            self.state.peers.failed(voter_id, now_ms)

    def end_request(self, role: Resigned) -> EndQuorumEpochRequest:
        return EndQuorumEpochRequest(self.state.node_id, self.state.epoch, role.preferred_successors)

    def resign(self, role: Leader, now_ms: int) -> None:
        self.state.become_resigned(role.progress.by_log_end(), now_ms)

    def check_quorum_deadline_ms(self, role: Leader, now_ms: int) -> int:
        return role.progress.majority_heard_ms(now_ms) + self.state.timing.check_quorum_timeout_ms

    def advance(self, role: Leader, now_ms: int) -> bool:
        if now_ms >= self.check_quorum_deadline_ms(role, now_ms):
            self.resign(role, now_ms)
            return True
        self._release_expired(role, now_ms)
        return False
