"""Carry out what the Raft core requests: disk, network and time around a pure state machine.

    event -> RaftNode -> Ready -> quorum-state synced -> log written -> sync started -> answers and requests are sent
                                                                      -> listener: committed records, new leaders

Events are processed one after the other, and each `Ready` is carried out completely before the next event. Only the
sync of the log runs in a thread, one at a time; appends in the meantime share the next sync. Any error here ends the
node: it must not act on an epoch or vote that may not be on the disk. An exception is data for an answer that cannot be
read while the disk works (the file is gone, or descriptors are short): only that answer fails.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from math import ceil
from typing import Protocol

from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.raft_counters import RaftCounters
from sskafka.quorum.raft_messages import batches_in
from sskafka.raft.errors import NotLeaderError
from sskafka.raft.log_view import SnapshotId
from sskafka.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    PeerRequest,
    PeerResponse,
    Request,
    Response,
)
from sskafka.raft.node import PeerDown, RaftNode, RequestFailed, RequestReceived, ResponseReceived
from sskafka.raft.ready import (
    Answer,
    FlushPoint,
    FollowerAppend,
    LeaderAndEpoch,
    LeaderAppend,
    LogRead,
    Ready,
    SnapshotRead,
)
from sskafka.runtime.background import Background
from sskafka.runtime.clock import Clock
from sskafka.storage.errors import LogDirectoryError, StorageError
from sskafka.storage.flusher import FlushPlan, sync_files

_log = logging.getLogger(__name__)

Reply = Callable[[Response], None]


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], TimerHandle]
"""Takes a delay in seconds and the function to call after it."""


class NoResponse(Enum):
    """Why a request to another node will not be answered."""

    LOST = "no connection could be made in time, or it broke"
    REFUSED = "no process listens at the node's address"


Done = Callable[[PeerResponse | NoResponse], None]


class QuorumNetwork(Protocol):
    def send(self, to: int, request: PeerRequest, done: Done) -> None:
        """Send a request. `done` is called later, once, with the answer or with the reason why there is none."""
        ...


class QuorumListener(Protocol):
    """Receives what the quorum has agreed on, in the order of the events."""

    def snapshot_installed(self, snapshot_id: SnapshotId) -> None: ...

    def committed_up_to(self, high_watermark: int) -> None: ...

    def leadership_changed(self, leadership: LeaderAndEpoch) -> None: ...


class QuorumDriver:
    def __init__(
        self,
        node: RaftNode,
        log: MetadataLog,
        network: QuorumNetwork,
        clock: Clock,
        call_later: CallLater,
        background: Background,
        listener: QuorumListener,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.node = node
        self._log = log
        self._network = network
        self._clock = clock
        self._call_later = call_later
        self._background = background
        self._listener = listener
        self._on_failure = on_failure
        self._steps: deque[Callable[[int], Ready]] = deque()
        self._is_busy = False
        self._is_stopped = False
        self._timer: TimerHandle | None = None
        self._wanted_flush: FlushPoint | None = None
        self._is_flushing = False
        self._is_full = False
        self.counters = RaftCounters()

    # ---- events

    def start(self) -> None:
        self._take(self.node.tick)

    def ask(self, request: Request, reply: Reply) -> None:
        """Process a request of another node. `reply` must be unique among the open requests."""
        self._take(lambda now_ms: self.node.receive(RequestReceived(request, reply), now_ms))

    def propose(self, batches: Buffer, record_count: int, epoch: int) -> int:
        """Append records that were decided in `epoch`, and return the offset after them.

        Raises NotLeaderError if this node does not lead `epoch`, and StorageError, with nothing appended, if the disk
        is full. The listener must not call this."""
        assert not self._is_busy, "propose() must not be called while another event is processed"
        if self._is_stopped:
            raise NotLeaderError(self.node.election.leader_id, self.node.epoch)
        ready = self.node.propose(batches, record_count, epoch, self._now_ms())
        assert isinstance(ready.append, LeaderAppend)
        try:
            self._log.append(ready.append, self._clock.now_ms())
        except LogDirectoryError as error:
            self._fail(error)
            raise
        except StorageError:
            self._take(self.node.append_failed)
            raise
        self.counters.appended(record_count, ready.append.end_offset, self._clock.monotonic_ms())
        self._take(lambda _: replace(ready, append=None))
        return ready.append.end_offset

    def resign(self) -> None:
        self._take(self.node.resign)

    def shutdown(self) -> None:
        """Stop campaigning and leading. `is_shut_down` becomes true when no other node depends on this one."""
        self._take(self.node.shutdown)

    @property
    def is_shut_down(self) -> bool:
        return self._is_stopped or self.node.is_shut_down

    def stop(self) -> None:
        """Process no further events."""
        self._is_stopped = True
        self._steps.clear()
        if self._timer is not None:
            self._timer.cancel()

    # ---- one event after the other

    def _take(self, step: Callable[[int], Ready]) -> None:
        self._steps.append(step)
        if self._is_busy or self._is_stopped:
            return
        self._is_busy = True
        try:
            while self._steps:
                self._carry_out(self._steps.popleft()(self._now_ms()))
        except Exception as error:  # the node cannot continue
            self._fail(error)
        finally:
            self._is_busy = False
        self._set_timer()

    def _fail(self, error: BaseException) -> None:
        _log.critical("this node's part of the metadata quorum has failed: %s", error)
        self.stop()
        self._on_failure(error)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_stopped:
            return
        now_ms = self._clock.monotonic_ms()
        wake_at_ms = self.node.wake_at_ms(int(now_ms))
        if wake_at_ms is not None:
            delay_ms = max(0, ceil(wake_at_ms - now_ms))
            self._timer = self._call_later(delay_ms / 1000, lambda: self._take(self.node.tick))

    # ---- one Ready, from top to bottom

    def _carry_out(self, ready: Ready) -> None:
        if ready.quorum_state is not None:
            self._log.write_election(ready.quorum_state, self.node.state.voters.ids)
        self._change_log(ready)
        if ready.flush is not None:
            self._wanted_flush = ready.flush
            self._maybe_flush()
        for answer in ready.answers:
            self._answer(answer)
        for send in ready.requests:
            self._send(send.to, send.request)
        self._notify_listener(ready)

    def _change_log(self, ready: Ready) -> None:
        if ready.snapshot_chunk is not None:
            self._log.write_chunk(ready.snapshot_chunk)
        if ready.installed_snapshot is not None:
            self._log.install_snapshot(ready.installed_snapshot)
        if ready.truncate_to is not None:
            self._log.truncate_to(ready.truncate_to)
        if ready.regained:
            self._log.regained()
        if ready.append is not None:
            self._append(ready, ready.append)

    def _append(self, ready: Ready, append: LeaderAppend | FollowerAppend) -> None:
        """Append, unless the disk is full. A follower fetches again; a leader that cannot begin its epoch resigns."""
        try:
            before = self._log.end_offset
            self._log.append(append, self._clock.now_ms())
            self._is_full = False
            if isinstance(append, FollowerAppend):
                self.counters.fetched_records += self._log.end_offset - before
        except LogDirectoryError:
            raise
        except StorageError as error:
            if not self._is_full:
                _log.error("the metadata log cannot grow: %s", error)
            self._is_full = True
            ready.flush = ready.high_watermark = None
            self._steps.append(self.node.append_failed)
            if isinstance(append, LeaderAppend):
                self._steps.append(self.node.resign)

    def _notify_listener(self, ready: Ready) -> None:
        if ready.installed_snapshot is not None:
            self._listener.snapshot_installed(ready.installed_snapshot)
        if ready.high_watermark is not None:
            self.counters.committed_up_to(ready.high_watermark, self._clock.monotonic_ms())
            self._listener.committed_up_to(ready.high_watermark)
        if ready.leadership is not None:
            self.counters.leadership_changed(ready.leadership, self._clock.monotonic_ms())
            self._listener.leadership_changed(ready.leadership)

    def _answer(self, answer: Answer) -> None:
        response = answer.response
        try:
            match answer.read, response:
                case LogRead(start_offset, max_bytes), FetchResponse():
                    batches = batches_in(self._log.read(start_offset, max_bytes))
                    response = replace(response, batches=batches)
                case SnapshotRead(snapshot_id, position, max_bytes), FetchSnapshotResponse():
                    data = self._log.read_snapshot_chunk(snapshot_id, position, max_bytes)
                    response = replace(response, data=data)
        except LogDirectoryError:
            raise
        except StorageError as error:
            assert isinstance(response, FetchResponse | FetchSnapshotResponse), "nothing is read for other answers"
            _log.warning("metadata could not be read for another node: %s", error)
            response = replace(response, error=ErrorCode.UNKNOWN_SERVER_ERROR)
        reply: Reply = answer.reply_to  # type: ignore[assignment]  # what `ask` was given
        reply(response)

    def _send(self, to: int, request: PeerRequest) -> None:
        def done(response: PeerResponse | NoResponse) -> None:
            if not isinstance(response, NoResponse):
                self._take(lambda now_ms: self.node.receive(ResponseReceived(to, request, response), now_ms))
                return
            self._take(lambda now_ms: self.node.receive(RequestFailed(to, request), now_ms))
            if response is NoResponse.REFUSED:
                self._take(lambda now_ms: self.node.receive(PeerDown(to), now_ms))

        self._network.send(to, request, done)

    # ---- syncs

    def _maybe_flush(self) -> None:
        if self._wanted_flush is None or self._is_flushing:
            return
        point, self._wanted_flush = self._wanted_flush, None
        self._is_flushing = True
        plan = self._log.plan_flush()
        self._background.in_thread(lambda: sync_files(plan.files), lambda error: self._flushed(point, plan, error))

    def _flushed(self, point: FlushPoint, plan: FlushPlan, error: BaseException | None) -> None:
        self._is_flushing = False
        if self._is_stopped:
            return
        if error is not None:
            self._fail(self._log.log.log_directory.fail(error) if isinstance(error, OSError) else error)
            return
        self._log.complete_flush(plan)
        self._take(lambda now_ms: self.node.flushed(point, now_ms))
        self._maybe_flush()
