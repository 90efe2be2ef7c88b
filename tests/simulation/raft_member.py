"""One node of the simulated quorum: the machine, its disk, and the driver that carries out what the machine asks."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Protocol

from raft_disk import SimulatedDisk, batch_at
from raft_invariants import History, next_state, require

from sskafka.lab.votes import LabVoteRequest, LabVoteResponse
from sskafka.raft.log_view import RaftBatch, SnapshotId
from sskafka.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PeerRequest,
    Response,
    VoteRequest,
    VoteResponse,
)
from sskafka.raft.node import RaftNode
from sskafka.raft.ready import (
    Answer,
    FlushPoint,
    FollowerAppend,
    LeaderAppend,
    LeaderChange,
    LogRead,
    Ready,
    Send,
    SnapshotRead,
)
from sskafka.raft.roles import Leader
from sskafka.raft.timing import Timing
from sskafka.raft.voters import VoterSet

EPOCHS_MAX = 1_000_000
"""No run has nearly as many elections; on the wire an epoch is an int32."""
_STATE_BYTES = 24
_FIXED_STATE = b"%0*d"


class MemberContext(Protocol):
    """What a member may do to the world."""

    now_ms: int
    history: History
    random: Random

    def send(self, member: "Member", send: Send) -> None: ...

    def answer(self, member: "Member", reply_to: object, response: Response) -> None: ...

    def start_flush(self, member: "Member", point: FlushPoint, mark: int) -> None: ...

    def check_durable(self) -> None: ...

    def disks_of_voters(self) -> list[SimulatedDisk]: ...


class NodeDiedError(Exception):
    """The node dies while it carries out a Ready."""


class Member:
    node_class: type[RaftNode] = RaftNode

    def __init__(self, node_id: int, voters: VoterSet, world: MemberContext, timing: Timing) -> None:
        self.node_id = node_id
        self.voters = voters
        self.world = world
        self.timing = timing
        self.disk = SimulatedDisk()
        self.node: RaftNode | None = None
        self.incarnation = 0
        self.wake_at_ms: int | None = None
        self.paused_until_ms = 0
        self.steps_to_crash: int | None = None
        self.shutdown_deadline_ms: int | None = None
        self._forget_memory()

    def _forget_memory(self) -> None:
        self.applied_offset = 0
        self.state = 0
        self.high_watermark = 0
        self.leading_epoch = -1
        self.heard_ms: dict[int, int] = {}
        self.proposals: list[RaftBatch] = []
        self.shutdown_deadline_ms = None

    # --- life and death -----------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        return self.node is not None

    def start(self) -> None:
        self.incarnation += 1
        self._forget_memory()
        self._load_snapshot()
        self.high_watermark = self.applied_offset
        self.node = self.node_class(
            self.node_id,
            self.voters,
            self.disk,
            self.disk.quorum_state,
            self.world.now_ms,
            self.world.random.randrange,
            self.timing,
            self.disk.synced_offset,
        )

    def request_to(self, node_id: int) -> PeerRequest | None:
        """What this node waits to hear from another one."""
        waiting = self.node.state.peers._in_flight.get(node_id)
        return waiting[0] if waiting else None

    def crash(self) -> None:
        self.node = None
        self.wake_at_ms = None
        self.steps_to_crash = None
        self.disk.crash(self.world.random.randrange)
        self.world.check_durable()

    def damage(self) -> None:
        assert not self.is_up
        self.disk.damage(self.world.random.randrange)

    # --- carrying out a Ready -------------------------------------------------------------------------

    def carry_out(self, ready: Ready) -> None:
        steps = list(self._steps(ready))
        self._maybe_meet_fate(ready, len(steps))
        for step in steps:
            if self.steps_to_crash is not None:
                if self.steps_to_crash == 0:
                    raise NodeDiedError
                self.steps_to_crash -= 1
            step()
        self._check_node()

    def _maybe_meet_fate(self, ready: Ready, steps: int) -> None:
        """Bugs wait where something is stored for good: die there more often than elsewhere."""
        is_delicate = ready.quorum_state is not None or ready.installed_snapshot is not None
        if is_delicate and self.world.random.randrange(100) < self.world.weather.fatal_percent:
            self.steps_to_crash = self.world.random.randrange(steps + 2)

    def _steps(self, ready: Ready) -> Iterator[Callable[[], None]]:
        if ready.quorum_state is not None:
            yield lambda: self.persist(ready)
        if ready.snapshot_chunk is not None:
            chunk = ready.snapshot_chunk
            yield lambda: self.disk.write_chunk(chunk.snapshot_id, chunk.position, bytes(chunk.data))
        if ready.installed_snapshot is not None:
            snapshot_id = ready.installed_snapshot
            yield from self._install(snapshot_id)
        if ready.truncate_to is not None:
            offset = ready.truncate_to
            yield lambda: self.disk.change("truncate", offset)
        if ready.regained:
            yield self.disk.regain
        if ready.append is not None:
            append = ready.append
            yield lambda: self._append(append)
        if ready.flush is not None:
            point = ready.flush
            yield lambda: self.world.start_flush(self, point, self.disk.mark())
        for answer in ready.answers:
            yield lambda answer=answer: self._answer(answer)
        for send in ready.requests:
            yield lambda send=send: self._send(send)
        if ready.high_watermark is not None:
            high_watermark = ready.high_watermark
            yield lambda: self._apply(high_watermark)

    def _install(self, snapshot_id: SnapshotId) -> Iterator[Callable[[], None]]:
        yield lambda: self.disk.finish_snapshot(snapshot_id)
        yield lambda: self._restart_log(snapshot_id)

    def persist(self, ready: Ready) -> None:
        old, new = self.disk.quorum_state, ready.quorum_state
        require(new.epoch >= old.epoch, "monotonic epoch", f"{self.node_id} stores {new} over {old}")
        require(new.epoch < EPOCHS_MAX, "epochs last", f"{self.node_id} stores {new} over {old}")
        self.disk.quorum_state = new

    def _restart_log(self, snapshot_id: SnapshotId) -> None:
        self.disk.change("restart", snapshot_id)
        self.disk.sync_up_to(self.disk.mark())
        self._load_snapshot()
        self.world.check_durable()

    def _append(self, append: LeaderAppend | FollowerAppend) -> None:
        batches = append.batches if isinstance(append, FollowerAppend) else (self._encode(append),)
        for batch in batches:
            self.world.history.appended(batch)
        self.disk.change("append", batches)

    def _encode(self, append: LeaderAppend) -> RaftBatch:
        is_change = isinstance(append.records, LeaderChange)
        data = b"leader %d" % append.records.leader_id if is_change else bytes(append.records)
        return batch_at(append.base_offset, append.epoch, append.record_count, data)

    def _answer(self, answer: Answer) -> None:
        response = answer.response
        match answer.read, response:
            case LogRead(start_offset, max_bytes), FetchResponse():
                response = replace(response, batches=self.disk.read(start_offset, max_bytes))
            case SnapshotRead(snapshot_id, position, max_bytes), FetchSnapshotResponse():
                content = self.disk.snapshots[snapshot_id]
                response = replace(response, data=content[position : position + max_bytes])
        self.world.answer(self, answer.reply_to, response)
        self._note_answer(answer.reply_to, response)

    def _note_answer(self, reply_to: object, response: Response) -> None:
        history = self.world.history
        match getattr(reply_to, "request", None), response:
            case VoteRequest(pre_vote=False) as request, VoteResponse(vote_granted=True):
                history.voted(self.node_id, request.epoch, request.candidate_id)
            case LabVoteRequest() as request, LabVoteResponse(granted=True):
                history.voted(self.node_id, request.epoch, request.candidate_id)
        if not isinstance(response, LabVoteResponse) and hasattr(response, "error"):
            history.told_epoch(self.node_id, response.leader_epoch)

    def _send(self, send: Send) -> None:
        match send.request:
            case VoteRequest(pre_vote=False) as request:
                self.world.history.voted(self.node_id, request.epoch, self.node_id)
        self.world.send(self, send)

    # --- the state machine ------------------------------------------------------------------------------

    def _apply(self, high_watermark: int) -> None:
        require(
            high_watermark > self.high_watermark,
            "monotonic high watermark",
            f"{self.node_id}: {self.high_watermark} to {high_watermark}",
        )
        end_offset = self.disk.live.end.offset
        require(high_watermark <= end_offset, "high watermark within the log", f"{high_watermark} of {end_offset}")
        self.high_watermark = high_watermark
        batches = self.disk.live.between(self.applied_offset, high_watermark)
        disks = self.world.disks_of_voters()
        self.world.history.high_watermark_moved(self.node_id, self.node.epoch, batches, disks)
        for batch in batches:
            self.state = next_state(self.state, batch)
            self.applied_offset = batch.end_offset
        self.world.history.applied(self.node_id, self.applied_offset, self.state)
        self._acknowledge()

    def _acknowledge(self) -> None:
        still_leads = isinstance(self.node.role, Leader) and self.node.epoch == self.leading_epoch
        while still_leads and self.proposals and self.proposals[0].end_offset <= self.high_watermark:
            self.world.history.acknowledge(self.proposals.pop(0))

    def _load_snapshot(self) -> None:
        snapshot_id = self.disk.latest_snapshot_id()
        if snapshot_id is not None:
            self.applied_offset, self.state = snapshot_id.offset, int(self.disk.snapshots[snapshot_id])
            self.world.history.applied(self.node_id, self.applied_offset, self.state)

    def take_snapshot(self) -> None:
        """Of everything applied, or of what a slower writer would have got to."""
        random = self.world.random
        applied = self.disk.live.between(self.start_offset, self.applied_offset)
        if not applied:
            return
        last = applied[random.randrange(len(applied))]
        content = _FIXED_STATE % (_STATE_BYTES, self.world.history.states[last.end_offset])
        snapshot_id = SnapshotId(last.end_offset, last.epoch)
        latest = self.disk.latest_snapshot_id()
        if latest is None or latest < snapshot_id:
            self.disk.keep_snapshot(snapshot_id, content)
            self.disk.change("trim", snapshot_id)

    @property
    def start_offset(self) -> int:
        return self.disk.start_offset

    # --- what holds after every event ---------------------------------------------------------------------

    def _check_node(self) -> None:
        node = self.node
        if isinstance(node.role, Leader) and self.leading_epoch != node.epoch:
            self.leading_epoch = node.epoch
            self.heard_ms = dict.fromkeys(self.voters.others(self.node_id), self.world.now_ms)
            self.proposals.clear()
            self.world.history.leader_elected(self.node_id, node.epoch, self.disk.live)
        same = node.high_watermark == self.high_watermark
        require(same, "high watermark is told", f"{node.high_watermark}, told {self.high_watermark}")

    def hears_fetch(self, request: FetchRequest | FetchSnapshotRequest) -> None:
        if request.replica_id in self.heard_ms and request.leader_epoch == self.leading_epoch:
            self.heard_ms[request.replica_id] = self.world.now_ms

    def check_isolation(self) -> None:
        """Called when the node has had the chance to notice the time."""
        if isinstance(self.node.role, Leader) and self.heard_ms:
            heard_ms = sorted(self.heard_ms.values(), reverse=True)[self.voters.majority - 2]
            silence_ms = self.world.now_ms - heard_ms
            limit_ms = self.timing.fetch_timeout_ms * 3 // 2
            require(silence_ms <= limit_ms, "an isolated leader resigns", f"{self.node_id} leads on after {silence_ms}")

    def propose(self, data: bytes, record_count: int) -> Ready:
        node = self.node
        ready = node.propose(data, record_count, node.epoch, self.world.now_ms)
        self.proposals.append(self._encode(ready.append))
        return ready
