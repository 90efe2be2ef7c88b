"""The state machine as its driver sees it: each event returns a `Ready`.

    node = RaftNode(...)            initialize from the state on disk; call `tick` at once for the first `Ready`
    node.tick(now_ms)               time has passed; call it no later than `wake_at_ms`
    node.receive(event, now_ms)     a request was received, an own request was answered or failed, or a peer is down
    node.propose(...)               commit records; on the leader only
    node.flushed(point, now_ms)     an fsync of the log is complete
    node.resign / node.shutdown     stop leading, and help the other voters to elect a new leader

`now_ms` never decreases. Messages may arrive in any order, more than once, late, or never.
"""

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.model.values import value
from sskafka.raft.election_state import ElectionState
from sskafka.raft.elections import Elections, candidate_deadline_ms
from sskafka.raft.following import Following
from sskafka.raft.leading import Leading
from sskafka.raft.log_view import RaftLog
from sskafka.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LocalRequest,
    PeerRequest,
    PeerResponse,
    Request,
    VoteRequest,
    VoteResponse,
)
from sskafka.raft.node_state import NodeState
from sskafka.raft.progress import Progress
from sskafka.raft.ready import Answer, FlushPoint, Ready, ReplyTo, Send
from sskafka.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from sskafka.raft.timing import RandomBelow, Timing
from sskafka.raft.voters import VoterSet

_ROLE_CHANGES_MAX = 8
"""Upper bound per event, to detect loops. The longest chain is from Unattached to Leader in a quorum of one."""


@value
class RequestReceived:
    """A request from another node or from this node's own software. Its response is in this `Ready` or a later one."""

    request: Request
    reply_to: ReplyTo


@value
class ResponseReceived:
    """The response of node `source` to a `Send`; the driver keeps the request until then."""

    source: int
    request: PeerRequest
    response: PeerResponse


@value
class RequestFailed:
    """A `Send` that failed because there was no connection or it broke. Reporting it avoids waiting for the timeout."""

    source: int
    request: PeerRequest


@value
class PeerDown:
    """A connection to node `peer_id` was refused: no process listens at its address.

    This is a hint, which may be late or wrong at any time. It only lets a timeout expire early that could have expired
    anyway:

        a follower of that node      campaigns after a short random delay, and grants pre-votes until the leader answers
        a node that counts votes     counts the peer as rejecting, instead of waiting for it until the election ends
        all other nodes              do nothing

    After a wrong hint, a follower requests pre-votes, which the nodes that hear from the leader reject; it stays in its
    epoch and follows the leader again.
    """

    peer_id: int


Event: TypeAlias = RequestReceived | ResponseReceived | RequestFailed | PeerDown


class RaftNode:
    __slots__ = ("elections", "following", "leading", "state")

    def __init__(
        self,
        node_id: int,
        voters: VoterSet,
        log: RaftLog,
        stored: ElectionState,
        now_ms: int,
        random_below: RandomBelow,
        timing: Timing | None = None,
        synced_offset: int | None = None,
    ) -> None:
        """`log` must be flushed. If it does not contain the end of its latest snapshot, restart it there first.

        `synced_offset` is the end offset that the log once had on disk, if that is known. If the log ends earlier, this
        node fetches the rest from the other voters before it takes part in elections again."""
        self.state = NodeState(node_id, voters, timing or Timing(), random_below, log, stored, now_ms, synced_offset)
        self.elections = Elections(self.state)
        self.following = Following(self.state)
        self.leading = Leading(self.state)

    # --- state ------------------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        return self.state.role

    @property
    def role_name(self) -> str:
        voted = isinstance(self.state.role, Unattached) and self.state.election.has_voted
        return "Voted" if voted else type(self.state.role).__name__

    @property
    def election(self) -> ElectionState:
        return self.state.election

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    @property
    def progress(self) -> Progress | None:
        """Progress of the other replicas, if this node is the leader."""
        return self.state.role.progress if isinstance(self.state.role, Leader) else None

    @property
    def is_shut_down(self) -> bool:
        """Whether a shutdown is complete: no other node waits for a message from this node."""
        role = self.state.role
        if not self.state.shutting_down or isinstance(role, Leader):
            return False
        return not isinstance(role, Resigned) or not role.unacknowledged

    # --- events -----------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> Ready:
        self.state.log_view.refresh()
        return self._finish(now_ms)

    def receive(self, event: Event, now_ms: int) -> Ready:
        self.state.log_view.refresh()
        match event:
            case RequestReceived(request, reply_to):
                self._handle_request(request, reply_to, now_ms)
            case ResponseReceived(source, request, response):
                self._handle_response(source, request, response, now_ms)
            case RequestFailed(source, request):
                if self.state.peers.complete(source, request):
                    self.state.peers.failed(source, now_ms)
            case PeerDown(peer_id):
                self._peer_down(peer_id, now_ms)
            case _:
                assert_never(event)
        return self._finish(now_ms)

    def propose(self, records: Buffer, record_count: int, epoch: int, now_ms: int) -> Ready:
        """Append `record_count` records that were decided in `epoch`; the `Ready` contains their base offset.

        They are committed when a `Ready` of this node has a high watermark above them while it still leads `epoch`.
        Raise NotLeaderError if this node does not lead that epoch.
        """
        self.state.log_view.refresh()
        self.leading.propose(records, record_count, epoch)
        return self._finish(now_ms)

    def append_failed(self, now_ms: int) -> Ready:
        """Handle a full disk: nothing of what the last `Ready` asked to append was written.

        The driver must not have acted on the `flush` and `high_watermark` of that `Ready`. A follower fetches the
        records again later; a leader that cannot even write its first record should resign.
        """
        self.state.log_view.refresh()
        self.state.undo_append()
        if isinstance(self.state.role, Follower):
            self.state.peers.failed(self.state.role.leader_id, now_ms)
        return self._finish(now_ms)

    def flushed(self, point: FlushPoint, now_ms: int) -> Ready:
        self.state.log_view.refresh()
        self.state.flushed(point)
        self._maybe_campaign_again(now_ms)
        if isinstance(self.state.role, Leader):
            self.leading.maybe_advance_high_watermark(self.state.role)
        return self._finish(now_ms)

    def _maybe_campaign_again(self, now_ms: int) -> None:
        """Set the election timeout of a voter that has recovered its lost records while it had no leader."""
        role = self.state.role
        if isinstance(role, Unattached) and role.election_deadline_ms is None and self.state.campaigns:
            role.election_deadline_ms = now_ms + self.state.election_timeout()

    def resign(self, now_ms: int) -> Ready:
        """Stop leading, e.g. because the state machine above has failed. Other nodes are not changed."""
        self.state.log_view.refresh()
        if isinstance(self.state.role, Leader):
            self.leading.resign(self.state.role, now_ms)
        return self._finish(now_ms)

    def shutdown(self, now_ms: int) -> Ready:
        """Never campaign again, and resign if this node leads. Keep delivering events until `is_shut_down`."""
        self.state.shutting_down = True
        if isinstance(self.state.role, Unattached):
            self.state.role.election_deadline_ms = None
        return self.resign(now_ms)

    def _peer_down(self, peer_id: int, now_ms: int) -> None:
        match self.state.role:
            case Follower(leader_id) as role if leader_id == peer_id:
                self.following.leader_is_down(role, now_ms)
            case Prospective(tally=tally) | Candidate(tally=tally):
                if self.state.is_other_voter(peer_id) and peer_id not in tally.granted:
                    tally.count(peer_id, granted=False)
            case _:
                pass

    # --- received requests ------------------------------------------------------------------------

    def _handle_request(self, request: Request, reply_to: ReplyTo, now_ms: int) -> None:
        match request:
            case FetchRequest():
                self.leading.fetch(request, reply_to, now_ms)
                return
            case FetchSnapshotRequest():
                self.leading.fetch_snapshot(request, reply_to, now_ms)
                return
            case VoteRequest():
                answer = Answer(reply_to, self.elections.vote(request, now_ms))
            case BeginQuorumEpochRequest():
                answer = Answer(reply_to, self.elections.begin_epoch(request, now_ms))
            case EndQuorumEpochRequest():
                answer = Answer(reply_to, self.elections.end_epoch(request, now_ms))
            case LocalRequest():
                answer = Answer(reply_to, request.answer(self.elections, now_ms))
            case _:
                assert_never(request)
        self.state.ready.answers.append(answer)

    # --- responses to own requests ----------------------------------------------------------------

    def _handle_response(self, source: int, request: PeerRequest, response: PeerResponse, now_ms: int) -> None:
        """Always learn leader and epoch from a response; handle the rest only if its request is still in flight."""
        is_awaited = self.state.peers.complete(source, request)
        role, epoch = self.state.role, self.state.epoch
        if isinstance(response, FetchResponse) and response.error is ErrorCode.NONE:
            self.state.note_leader_answers(source, response.leader_epoch)
        self.state.learn(response.leader_id, response.leader_epoch, now_ms)
        if is_awaited and self.state.role is role and self.state.epoch == epoch:
            self._dispatch_response(source, request, response, now_ms)

    def _dispatch_response(self, source: int, request: PeerRequest, response: PeerResponse, now_ms: int) -> None:
        match request, response:
            case VoteRequest(), VoteResponse():
                self.elections.handle_vote_response(source, request, response)
            case BeginQuorumEpochRequest(), BeginQuorumEpochResponse():
                self.leading.handle_begin_response(source, response, now_ms)
            case EndQuorumEpochRequest(), EndQuorumEpochResponse():
                self._handle_end_response(source)
            case FetchRequest(), FetchResponse() if isinstance(self.state.role, Follower):
                self.following.handle_fetch_response(self.state.role, response, now_ms)
            case FetchSnapshotRequest(), FetchSnapshotResponse() if isinstance(self.state.role, Follower):
                self.following.handle_snapshot_response(self.state.role, response, now_ms)
            case _:
                self.state.peers.failed(source, now_ms)  # while looking for the leader, try the next voter

    def _handle_end_response(self, source: int) -> None:
        if isinstance(self.state.role, Resigned):
            self.state.role.unacknowledged.discard(source)

    # --- time -------------------------------------------------------------------------------------

    def _finish(self, now_ms: int) -> Ready:
        self.state.peers.expire(now_ms)
        for _ in range(_ROLE_CHANGES_MAX):
            if not self._advance(now_ms):
                break
        else:
            raise AssertionError(f"node {self.state.node_id} changes its role in a loop")
        self._send_due_requests(now_ms)
        return self.state.take_ready()

    def _advance(self, now_ms: int) -> bool:
        """Let the role react to time and to received responses; return whether the role changed."""
        match self.state.role:
            case Prospective() as role:
                return self.elections.advance_prospective(role, now_ms)
            case Candidate() as role:
                return self.elections.advance_candidate(role, now_ms)
            case Leader() as role:
                return self.leading.advance(role, now_ms)
            case Unattached(deadline_ms) | Resigned(deadline_ms):
                return deadline_ms is not None and now_ms >= deadline_ms and self._campaign(now_ms)
            case Follower(fetch_deadline_ms=deadline_ms):
                return now_ms >= deadline_ms and self._lose_leader(now_ms)
            case _ as unreachable:
                assert_never(unreachable)

    def _campaign(self, now_ms: int) -> bool:
        if self.state.campaigns:
            self.state.become_prospective(now_ms)
        return self.state.campaigns

    def _lose_leader(self, now_ms: int) -> bool:
        if not self.state.campaigns:
            self.state.leave_leader(now_ms)
            return True
        return self._campaign(now_ms)

    def wake_at_ms(self, now_ms: int) -> int | None:
        """Return when `tick` is due if no other event happens before; None: never."""
        times = [*self._role_deadlines(now_ms), *(at_ms for _, at_ms in self._wanted_requests())]
        return min(times, default=None)

    def _role_deadlines(self, now_ms: int) -> Iterator[int]:
        match self.state.role:
            case Unattached(deadline_ms) | Resigned(deadline_ms):
                if deadline_ms is not None and self.state.campaigns:
                    yield deadline_ms
            case Follower(fetch_deadline_ms=deadline_ms) | Prospective(deadline_ms):
                yield deadline_ms
            case Candidate() as role:
                yield candidate_deadline_ms(role)
            case Leader(parked=parked) as role:
                yield self.leading.check_quorum_deadline_ms(role, now_ms)
                yield from (fetch.deadline_ms for fetch in parked.values())

    # --- own requests -----------------------------------------------------------------------------

    def _send_due_requests(self, now_ms: int) -> None:
        for node_id in [node_id for node_id, at_ms in self._wanted_requests() if at_ms <= now_ms]:
            request = self._request_for()
            self.state.peers.sent(node_id, request, now_ms)
            self.state.ready.requests.append(Send(node_id, request))

    def _wanted_requests(self) -> Iterator[tuple[int, int]]:
        """Yield each node that the role has a request for, and the earliest time to send it."""
        for node_id, due_ms in self._role_requests():
            yield node_id, max(due_ms, self.state.peers.next_request_at_ms(node_id))

    def _role_requests(self) -> Iterator[tuple[int, int]]:
        state = self.state
        match state.role:
            case Unattached():
                if not state.is_voter or (state.lost_end is not None and state.pending_flush is None):
                    yield min(state.voters.others(state.node_id), key=state.peers.failures), 0
            case Follower(leader_id):
                if state.pending_flush is None:
                    yield leader_id, 0
            case Prospective(tally=tally) | Candidate(tally=tally):
                undecided = set(state.voters.ids) - tally.granted - tally.rejected
                yield from ((voter_id, 0) for voter_id in sorted(undecided))
            case Leader(progress=progress):
                yield from ((voter_id, replica.begin_due_ms) for voter_id, replica in progress.replicas.items())
            case Resigned(unacknowledged=unacknowledged):
                yield from ((voter_id, 0) for voter_id in sorted(unacknowledged))

    def _request_for(self) -> PeerRequest:
        match self.state.role:
            case Prospective() | Candidate():
                return self.elections.vote_request()
            case Leader():
                return self.leading.begin_request()
            case Resigned() as role:
                return self.leading.end_request(role)
            case Follower() | Unattached():
                return self.following.next_request()
            case _ as unreachable:
                assert_never(unreachable)
