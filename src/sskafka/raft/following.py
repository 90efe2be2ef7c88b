"""The follower role: fetch from the leader, append its batches, truncate where the logs diverge, and download a
snapshot if the leader's log starts after the end of the follower's log.

At most one fetch is in flight, and none while this node's own log has unflushed records: the fetch offset tells the
leader that everything before it is on disk.
"""

from sskafka.model.errors import ErrorCode
from sskafka.raft.errors import CommittedRecordsLostError
from sskafka.raft.log_view import OffsetAndEpoch, RaftBatch, SnapshotId
from sskafka.raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse
from sskafka.raft.node_state import NodeState
from sskafka.raft.ready import FollowerAppend, LeaderAndEpoch, SnapshotChunk
from sskafka.raft.roles import Follower, SnapshotDownload


class Following:
    __slots__ = ("state",)

    def __init__(self, state: NodeState) -> None:
        self.state = state

    # --- requests ---------------------------------------------------------------------------------

    def next_request(self) -> FetchRequest | FetchSnapshotRequest:
        match self.state.role:
            case Follower(download=SnapshotDownload(snapshot_id, position)):
                return self._snapshot_request(snapshot_id, position)
            case _:
                return self._fetch_request()

    def _fetch_request(self) -> FetchRequest:
        state = self.state
        end = state.log_view.end
        return FetchRequest(
            replica_id=state.node_id,
            leader_epoch=state.epoch,
            fetch_offset=end.offset,
            last_fetched_epoch=end.epoch,
            high_watermark=state.high_watermark,
            max_wait_ms=state.timing.fetch_wait_ms,
            max_bytes=state.timing.fetch_max_bytes,
        )

    def _snapshot_request(self, snapshot_id: SnapshotId, position: int) -> FetchSnapshotRequest:
        state = self.state
        max_bytes = state.timing.fetch_snapshot_max_bytes
        return FetchSnapshotRequest(state.node_id, state.epoch, snapshot_id, position, max_bytes)

    # --- records ----------------------------------------------------------------------------------

    def handle_fetch_response(self, role: Follower, response: FetchResponse, now_ms: int) -> None:
        """Handle the response to the current fetch, from the leader that this node follows in its current epoch."""
        if response.error is not ErrorCode.NONE:
            self._handle_error(role, response, now_ms)
        elif response.diverging is not None:
            self._leader_answered(role, now_ms)
            self._truncate(response.diverging)
        elif response.snapshot_id is not None:
            self._leader_answered(role, now_ms)
            self._start_download(role, response.snapshot_id)
        elif self._continue_log(response.batches):
            self._leader_answered(role, now_ms)
            self._append_batches(response)
        else:
            self.state.peers.failed(role.leader_id, now_ms)

    def _handle_error(self, role: Follower, response: FetchResponse | FetchSnapshotResponse, now_ms: int) -> None:
        state = self.state
        if response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and response.leader_epoch == state.epoch:
            state.ended = LeaderAndEpoch(role.leader_id, state.epoch)
            state.leave_leader(now_ms, role.successor_deadline_ms)
            state.learn(response.leader_id, response.leader_epoch, now_ms)
        else:
            state.peers.failed(role.leader_id, now_ms)

    def _leader_answered(self, role: Follower, now_ms: int) -> None:
        role.has_fetched = True
        role.fetch_deadline_ms = now_ms + self.state.timing.fetch_timeout_ms
        self.state.peers.succeeded(role.leader_id)

    def leader_is_down(self, role: Follower, now_ms: int) -> None:
        """Start an election soon. Until the leader answers again, do not reject pre-votes because of it."""
        state = self.state
        role.has_fetched = False
        deadline_ms = now_ms + state.timing.failover_delay(state.random_below)
        role.fetch_deadline_ms = min(role.fetch_deadline_ms, deadline_ms)

    def _truncate(self, diverging: OffsetAndEpoch) -> None:
        target = self.state.log_view.truncation_target(diverging)
        if target is None or target < self.state.high_watermark:
            raise CommittedRecordsLostError(
                f"the leader requests truncation to {diverging}, but {self.state.high_watermark} is committed"
            )
        self.state.truncate_to(target)

    def _continue_log(self, batches: tuple[RaftBatch, ...]) -> bool:
        """Return whether the batches continue this node's log, and each other, in offset and epoch."""
        offset, epoch = self.state.log_view.end
        for batch in batches:
            if (
                batch.base_offset != offset
                or batch.end_offset <= offset
                or not epoch <= batch.epoch <= self.state.epoch
            ):
                return False
            offset, epoch = batch.end_offset, batch.epoch
        return True

    def _append_batches(self, response: FetchResponse) -> None:
        end_offset = self.state.log_view.end.offset
        if response.batches:
            append = FollowerAppend(response.batches)
            end_offset = append.end_offset
            self.state.append(append)
        else:
            self.state.leader_has_no_more()
        self.state.advance_high_watermark(min(response.high_watermark, end_offset))

    # --- snapshots --------------------------------------------------------------------------------

    def _start_download(self, role: Follower, snapshot_id: SnapshotId) -> None:
        if snapshot_id.offset < self.state.high_watermark:
            raise CommittedRecordsLostError(
                f"the leader offers snapshot {snapshot_id}, but {self.state.high_watermark} is committed"
            )
        role.download = SnapshotDownload(snapshot_id)

    def handle_snapshot_response(self, role: Follower, response: FetchSnapshotResponse, now_ms: int) -> None:
        if response.error in {ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE}:
            role.download = None
            self.state.peers.failed(role.leader_id, now_ms)
        elif response.error is not ErrorCode.NONE:
            self._handle_error(role, response, now_ms)
        elif role.download is not None and self._continue_download(role.download, response):
            self._leader_answered(role, now_ms)
            self._write_chunk(role, role.download, response)
        else:
            self.state.peers.failed(role.leader_id, now_ms)

    @staticmethod
    def _continue_download(download: SnapshotDownload, response: FetchSnapshotResponse) -> bool:
        position_after = response.position + len(response.data)
        return (
            response.snapshot_id == download.snapshot_id
            and response.position == download.position < position_after <= response.size
        )

    def _write_chunk(self, role: Follower, download: SnapshotDownload, response: FetchSnapshotResponse) -> None:
        state = self.state
        state.ready.snapshot_chunk = SnapshotChunk(download.snapshot_id, download.position, response.data)
        download.position += len(response.data)
        if download.position == response.size:
            role.download = None
            state.restart_log_at(download.snapshot_id)
            state.advance_high_watermark(download.snapshot_id.offset)
