"""The state of one node and the only ways to change it: role, epoch and vote, high watermark, and pending log changes.

`transition` is the only place where role and epoch change. It checks the table in `roles`, notes what must be persisted
and drops the requests of the old role. The `become_x` methods define the initial state of each role.

A voter whose disk has lost records that were synced (`lost_end`) may have been counted in the majority that committed
them. Until it has fetched them again, such a voter

    does not campaign    it looks for the leader with fetches, as an observer does
    votes as before      only for a candidate whose log is at least as up to date as this voter's log was before the
                         loss, not merely as its remaining log
    reports its loss     its fetch offset is the end of the remaining log, and the leader counts no more than that

The voter is complete again when its log is synced up to the offset that it once had, when the leader has made it
truncate before the loss (then the lost records were not committed), or when the leader of the same or a later epoch has
no more records: that leader has everything that is committed. ADR 22 has the reasons.
"""

from sskafka.model.errors import ErrorCode
from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import LogView, OffsetAndEpoch, RaftLog, SnapshotId
from sskafka.raft.messages import FetchResponse, PeerRequest
from sskafka.raft.progress import Progress
from sskafka.raft.ready import (
    Answer,
    FlushPoint,
    FollowerAppend,
    LeaderAndEpoch,
    LeaderAppend,
    LeaderChange,
    Ready,
)
from sskafka.raft.roles import (
    OBSERVER_ROLES,
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Tally,
    Unattached,
)
from sskafka.raft.timing import RandomBelow, Timing
from sskafka.raft.voters import NO_NODE, VoterSet

EPOCH_LEAD_MAX = 1_000
"""How far requests may lift the epoch above the last one that a response has confirmed. A voter misses fewer elections
than that while it is not away for long, and 2^31 epochs last for weeks of such requests without any leader."""
EPOCH_JUMP_MAX = 1_000_000
"""How far a response may lift it: one election a second, for eleven days that this node was away."""


class NodeState:
    __slots__ = (
        "_reported_leadership",
        "election",
        "ended",
        "failed_elections",
        "flushed_offset",
        "generation",
        "high_watermark",
        "is_voter",
        "log_view",
        "lost_end",
        "node_id",
        "peers",
        "pending_flush",
        "random_below",
        "ready",
        "role",
        "shutting_down",
        "timing",
        "verified_epoch",
        "voters",
    )

    def __init__(
        self,
        node_id: int,
        voters: VoterSet,
        timing: Timing,
        random_below: RandomBelow,
        log: RaftLog,
        stored: ElectionState,
        now_ms: int,
        synced_offset: int | None = None,
    ) -> None:
        self.node_id = node_id
        self.voters = voters
        self.is_voter = node_id in voters
        self.timing = timing
        self.random_below = random_below
        self.log_view = LogView(log)
        self.peers = Peers(timing)
        self.ready = Ready()
        self.shutting_down = False
        self.failed_elections = 0
        self.ended: LeaderAndEpoch | None = None
        self.generation = 0
        self.pending_flush: FlushPoint | None = None
        self.flushed_offset = log.end_offset
        snapshot_id = log.latest_snapshot_id()
        assert snapshot_id is None or self.log_view.contains(snapshot_id), f"the log does not contain {snapshot_id}"
        self.high_watermark = snapshot_id.offset if snapshot_id else 0
        self._reported_leadership = LeaderAndEpoch(NO_NODE, 0)
        self.election = stored
        self.lost_end = self._find_loss(synced_offset)
        self.role: Role = Unattached(None)
        self._restart(stored, now_ms)
        self.verified_epoch = self.epoch

    # --- restart ----------------------------------------------------------------------------------

    def _find_loss(self, synced_offset: int | None) -> OffsetAndEpoch | None:
        """Return the end that the log once had on disk, if it ends earlier now. The epoch of the last record that is
        lost is not known; it was not later than the stored epoch."""
        if synced_offset is None or synced_offset <= self.log_view.end.offset:
            return None
        assert not self.voters.is_only(self.node_id), "no other node has what a quorum of one has lost"
        return OffsetAndEpoch(synced_offset, max(self.epoch, self.log_view.end.epoch))

    def _restart(self, stored: ElectionState, now_ms: int) -> None:
        election = stored.in_epoch(max(stored.epoch, self.log_view.end.epoch))
        if election.leader_id == self.node_id:
            election = election.without_leader().with_vote(self.node_id)
        self.remember(election)
        if election.leader_id in self.voters:
            self.role = Follower(election.leader_id, now_ms + self.timing.fetch_timeout_ms)
        else:
            self.role = Unattached(self._first_election_deadline(now_ms))

    def _first_election_deadline(self, now_ms: int) -> int | None:
        if not self.campaigns:
            return None
        if self.voters.is_only(self.node_id):
            return now_ms
        delay_ms = self.timing.first_election_delay_ms
        if delay_ms is not None and self.election.epoch == 0:
            return now_ms + delay_ms
        return now_ms + self.election_timeout()

    # --- queries ----------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_hint(self) -> int:
        """The leader to name in responses; a node that has lost contact with its leader names none."""
        return NO_NODE if isinstance(self.role, Prospective) else self.election.leader_id

    @property
    def vote_end(self) -> OffsetAndEpoch:
        """The log end that a candidate must have reached to get this node's vote."""
        return self.log_view.end if self.lost_end is None else self.lost_end

    def is_within_reason(self, epoch: int) -> bool:
        return epoch <= self.verified_epoch + EPOCH_LEAD_MAX

    def election_timeout(self) -> int:
        return self.timing.election_timeout(self.random_below)

    def is_other_voter(self, node_id: int) -> bool:
        return node_id in self.voters and node_id != self.node_id

    # --- transitions ------------------------------------------------------------------------------

    def transition(self, role: Role, election: ElectionState) -> None:
        allowed = TRANSITIONS.get((type(self.role), type(role)))
        step = f"{type(self.role).__name__} in epoch {self.epoch} to {type(role).__name__} in epoch {election.epoch}"
        assert allowed is not None, f"no transition from {step}"
        assert allowed(election.epoch, self.epoch), f"wrong epoch: {step}"
        assert self.is_voter or isinstance(role, OBSERVER_ROLES), f"observer goes from {step}"
        left, self.role = self.role, role
        self.remember(election)
        self.peers.forget()
        if isinstance(left, Leader):
            self._answer_parked_fetches(left)

    def remember(self, election: ElectionState) -> None:
        if election == self.election:
            return
        assert election.epoch >= self.election.epoch, f"epoch goes back from {self.election} to {election}"
        if election.epoch == self.election.epoch and self.election.has_voted:
            assert election.voted_id == self.election.voted_id, f"second vote, from {self.election} to {election}"
        self.election = election
        self.ready.quorum_state = election

    def _answer_parked_fetches(self, left: Leader) -> None:
        rejection = FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.leader_hint, self.epoch)
        self.ready.answers.extend(Answer(reply_to, rejection) for reply_to in left.parked)

    def become_unattached(self, epoch: int, now_ms: int) -> None:
        """Move to a later epoch whose leader is unknown. A running election timeout continues; otherwise a sequence of
        later epochs could delay this node's own election forever."""
        match self.role:
            case Unattached(deadline_ms):
                pass
            case Prospective(election_deadline_ms=deadline_ms) | Candidate(election_deadline_ms=deadline_ms):
                pass
            case _:
                deadline_ms = self._election_deadline(now_ms)
        self.transition(Unattached(deadline_ms), self.election.in_epoch(epoch))

    def become_voted(self, epoch: int, candidate_id: int, now_ms: int) -> None:
        """Vote in that epoch; the candidate then has one election timeout to win."""
        election = self.election.in_epoch(epoch).with_vote(candidate_id)
        self.transition(Unattached(self._election_deadline(now_ms)), election)

    def leave_leader(self, now_ms: int, deadline_ms: int | None = None) -> None:
        """Stay in the epoch, which no longer has a leader."""
        if deadline_ms is None or not self.campaigns:
            deadline_ms = self._election_deadline(now_ms)
        self.transition(Unattached(deadline_ms), self.election.without_leader())

    def become_follower(self, leader_id: int, epoch: int, now_ms: int) -> None:
        assert self.is_other_voter(leader_id), f"node {self.node_id} cannot follow {leader_id}"
        self.failed_elections = 0
        election = self.election.in_epoch(epoch).with_leader(leader_id)
        self.transition(Follower(leader_id, now_ms + self.timing.fetch_timeout_ms), election)

    def become_prospective(self, now_ms: int) -> None:
        deadline_ms = now_ms + self.election_timeout()
        self.transition(Prospective(deadline_ms, Tally({self.node_id})), self.election)

    def become_candidate(self, now_ms: int) -> None:
        deadline_ms = now_ms + self.election_timeout()
        election = self.election.in_epoch(self.epoch + 1).with_vote(self.node_id)
        self.transition(Candidate(deadline_ms, Tally({self.node_id})), election)
        self.verified_epoch = self.epoch

    def become_leader(self, granting_voters: tuple[int, ...], now_ms: int) -> None:
        self.failed_elections = 0
        start_offset = self.log_view.end.offset
        progress = Progress.of_new_leader(self.voters, self.node_id, now_ms)
        self.transition(Leader(start_offset, progress), self.election.with_leader(self.node_id))
        change = LeaderChange(self.node_id, self.voters.ids, granting_voters)
        self.append(LeaderAppend(start_offset, self.epoch, 1, change))

    def become_resigned(self, preferred_successors: tuple[int, ...], now_ms: int) -> None:
        deadline_ms = now_ms + self.election_timeout()
        role = Resigned(deadline_ms, set(self.voters.others(self.node_id)), preferred_successors)
        self.transition(role, self.election.without_leader())

    @property
    def campaigns(self) -> bool:
        return self.is_voter and not self.shutting_down and self.lost_end is None

    def _election_deadline(self, now_ms: int) -> int | None:
        return now_ms + self.election_timeout() if self.campaigns else None

    # --- leaders and epochs reported by other nodes -----------------------------------------------

    def learn(self, leader_id: int, epoch: int, now_ms: int) -> None:
        """Handle a response whose sender knows this epoch, and perhaps its leader."""
        if not self.epoch <= epoch <= self.epoch + EPOCH_JUMP_MAX:
            return
        if epoch > self.epoch:
            if self.is_other_voter(leader_id):
                self.become_follower(leader_id, epoch, now_ms)
            else:
                self.become_unattached(epoch, now_ms)
        elif self._is_new_leader(leader_id):
            self.become_follower(leader_id, epoch, now_ms)
        self.verified_epoch = self.epoch

    def note_leader_answers(self, leader_id: int, epoch: int) -> None:
        """Note that a leader answers fetches. A late answer from before its election may have said that it does not."""
        if self.ended == LeaderAndEpoch(leader_id, epoch):
            self.ended = None

    def _is_new_leader(self, leader_id: int) -> bool:
        """Return whether this node has no leader in its epoch and has not tried the reported one yet."""
        return (
            isinstance(self.role, Unattached | Prospective | Candidate)
            and self.is_other_voter(leader_id)
            and leader_id != self.election.leader_id
            and self.ended != LeaderAndEpoch(leader_id, self.epoch)
        )

    # --- log and high watermark -------------------------------------------------------------------

    def append(self, append: LeaderAppend | FollowerAppend) -> None:
        self.ready.append = append
        self._ask_for_flush(append.end_offset)

    def undo_append(self) -> None:
        """Undo an append that was not written: it will not be flushed, and its commit was not reported."""
        end_offset = self.log_view.end.offset
        self.high_watermark = min(self.high_watermark, end_offset)
        is_flushed = self.flushed_offset >= end_offset
        self.pending_flush = None if is_flushed else FlushPoint(end_offset, self.generation)

    def truncate_to(self, offset: int) -> None:
        assert offset >= self.high_watermark, f"truncation to {offset}, below {self.high_watermark}"
        self.ready.truncate_to = offset
        self.generation += 1
        if self.lost_end is not None:
            self._regain()
        self.flushed_offset = min(self.flushed_offset, offset)
        self._ask_for_flush(offset)

    def restart_log_at(self, snapshot_id: SnapshotId) -> None:
        self.ready.installed_snapshot = snapshot_id
        self.generation += 1
        self.flushed_offset = snapshot_id.offset
        self._ask_for_flush(snapshot_id.offset)

    def _ask_for_flush(self, end_offset: int) -> None:
        self.log_view.invalidate()
        self.pending_flush = self.ready.flush = FlushPoint(end_offset, self.generation)

    def flushed(self, point: FlushPoint) -> None:
        if point.generation != self.generation:
            return
        self.flushed_offset = max(self.flushed_offset, point.end_offset)
        if self.pending_flush is not None and self.pending_flush.end_offset <= point.end_offset:
            self.pending_flush = None
        if self.lost_end is not None and self.flushed_offset >= self.lost_end.offset:
            self._regain()

    def leader_has_no_more(self) -> None:
        """Note that the leader has no records after the end of this node's log, all of which is on disk."""
        if self.lost_end is not None:
            self._regain()

    def _regain(self) -> None:
        self.lost_end = None
        self.ready.regained = True

    def advance_high_watermark(self, offset: int) -> bool:
        if offset <= self.high_watermark:
            return False
        self.high_watermark = self.ready.high_watermark = offset
        return True

    # --- Ready ------------------------------------------------------------------------------------

    def take_ready(self) -> Ready:
        ready, self.ready = self.ready, Ready()
        leadership = LeaderAndEpoch(self.election.leader_id, self.epoch)
        if leadership != self._reported_leadership:
            self._reported_leadership = ready.leadership = leadership
        return ready


class Peers:
    """Requests to other nodes: at most one in flight per node, with a timeout, and a backoff after a failure.

    A response counts only while its request is in flight. A role change drops all requests, so that a late response to
    a request of the old role has no effect."""

    __slots__ = ("_failures", "_in_flight", "_not_before_ms", "_timing")

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._in_flight: dict[int, tuple[PeerRequest, int]] = {}
        self._not_before_ms: dict[int, int] = {}
        self._failures: dict[int, int] = {}

    def forget(self) -> None:
        self._in_flight.clear()
        self._not_before_ms.clear()
        self._failures.clear()

    def sent(self, node_id: int, request: PeerRequest, now_ms: int) -> None:
        self._in_flight[node_id] = (request, now_ms + self._timing.request_timeout_ms)

    def complete(self, node_id: int, request: PeerRequest) -> bool:
        """Remove the request in flight to that node; return False if `request` is not the one in flight."""
        waiting = self._in_flight.get(node_id)
        if waiting is None or waiting[0] != request:
            return False
        del self._in_flight[node_id]
        return True

    def succeeded(self, node_id: int) -> None:
        self._failures.pop(node_id, None)
        self._not_before_ms.pop(node_id, None)

    def failed(self, node_id: int, now_ms: int) -> None:
        failures = self._failures.get(node_id, 0) + 1
        self._failures[node_id] = failures
        self._not_before_ms[node_id] = now_ms + self._timing.retry_backoff(failures)

    def failures(self, node_id: int) -> int:
        return self._failures.get(node_id, 0)

    def expire(self, now_ms: int) -> None:
        late = [node_id for node_id, (_, deadline_ms) in self._in_flight.items() if deadline_ms <= now_ms]
        for node_id in late:
            del self._in_flight[node_id]
            self.failed(node_id, now_ms)

    def next_request_at_ms(self, node_id: int) -> int:
        """Return the earliest time for the next request to that node, as known now."""
        waiting = self._in_flight.get(node_id)
        return waiting[1] if waiting else self._not_before_ms.get(node_id, 0)
