"""Elections: grant votes, and count the votes of other nodes.

A node grants at most one vote per epoch, to a candidate whose log is at least as up to date as its own, including what
its disk has lost since. The vote is on disk before the response is sent. A pre-vote does not bind the voter.

Requests are not authenticated: any host that reaches the port can claim to be a voter. A response comes from an address
that this node has connected to itself. So a request moves this node to a later epoch only if

    no leader is heard   a leader, and a follower that its leader answers, ignore later epochs in requests. A node that
                         returns from a network partition does not disturb the quorum either. If a new leader was
                         really elected, the old one finds out from the responses to its own requests, or resigns.
    it is within reason  at most `EPOCH_LEAD_MAX` above the last epoch that a response has confirmed. A node that was
                         away for longer learns the epoch from the responses to its pre-votes or fetches.
    it is a voter        observers find leader and epoch by fetching; no leader contacts an observer that was moved
                         to an epoch of its own.

The end of an epoch is believed only when the leader itself says so in a response; the request only tells which voter
campaigns first. ADR 20 has the reasons.
"""

from sskafka.model.errors import ErrorCode
from sskafka.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from sskafka.raft.node_state import NodeState
from sskafka.raft.ready import LeaderAndEpoch
from sskafka.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached


class Elections:
    __slots__ = ("state",)

    def __init__(self, state: NodeState) -> None:
        self.state = state

    # --- requests of other voters ------------------------------------------------------------------

    def vote(self, request: VoteRequest, now_ms: int) -> VoteResponse:
        error = self._vote_error(request)
        if error is ErrorCode.NONE and self.ignores(request.epoch):
            return VoteResponse(error, self.state.leader_hint, self.state.epoch)
        granted = error is ErrorCode.NONE and self.grants(request)
        if granted and not request.pre_vote:
            self.cast_vote(request.candidate_id, request.epoch, now_ms)
        elif error is ErrorCode.NONE and request.epoch > self.state.epoch:
            self.state.become_unattached(request.epoch, now_ms)
        return VoteResponse(error, self.state.leader_hint, self.state.epoch, granted)

    def _vote_error(self, request: VoteRequest) -> ErrorCode:
        if not self.state.is_voter or not self.state.is_other_voter(request.candidate_id):
            return ErrorCode.INCONSISTENT_VOTER_SET
        return ErrorCode.FENCED_LEADER_EPOCH if request.epoch < self.state.epoch else ErrorCode.NONE

    def ignores(self, epoch: int) -> bool:
        """Return whether a request does not move this node to its later epoch; see the rules above."""
        state = self.state
        is_credible = state.is_voter and not self.hears_leader() and state.is_within_reason(epoch)
        return epoch > state.epoch and not is_credible

    def hears_leader(self) -> bool:
        match self.state.role:
            case Leader():
                return True
            case Follower(has_fetched=has_fetched):
                return has_fetched
            case _:
                return False

    def grants(self, request: VoteRequest) -> bool:
        if not request.log_end.is_at_least(self.state.vote_end):
            return False
        if request.epoch > self.state.epoch:
            return True
        if request.pre_vote:
            return not self.hears_leader()
        return self.may_vote_for(request.candidate_id)

    def may_vote_for(self, candidate_id: int) -> bool:
        """Return whether the vote in the current epoch is not cast yet, or was cast for this candidate."""
        election = self.state.election
        if election.has_voted:
            return election.voted_id == candidate_id
        return not election.has_leader

    def cast_vote(self, candidate_id: int, epoch: int, now_ms: int) -> None:
        if (epoch, candidate_id) != (self.state.epoch, self.state.election.voted_id):
            self.state.become_voted(epoch, candidate_id, now_ms)

    def begin_epoch(self, request: BeginQuorumEpochRequest, now_ms: int) -> BeginQuorumEpochResponse:
        error = self._begin_error(request)
        is_change = request.leader_epoch > self.state.epoch or not isinstance(self.state.role, Follower)
        if error is ErrorCode.NONE and is_change:
            self.state.become_follower(request.leader_id, request.leader_epoch, now_ms)
        return BeginQuorumEpochResponse(error, self.state.leader_hint, self.state.epoch)

    def _begin_error(self, request: BeginQuorumEpochRequest) -> ErrorCode:
        if not self.state.is_other_voter(request.leader_id):
            return ErrorCode.INCONSISTENT_VOTER_SET
        if request.leader_epoch < self.state.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.leader_epoch == self.state.epoch and self._knows_other_leader(request.leader_id):
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.UNKNOWN_LEADER_EPOCH if self.ignores(request.leader_epoch) else ErrorCode.NONE

    def _knows_other_leader(self, leader_id: int) -> bool:
        """Return whether this node leads or led its epoch itself, or follows another leader in it."""
        match self.state.role:
            case Leader() | Resigned():
                return True
            case Follower(known_id):
                return known_id != leader_id
            case _:
                return False

    def end_epoch(self, request: EndQuorumEpochRequest, now_ms: int) -> EndQuorumEpochResponse:
        error = self._end_error(request)
        if error is ErrorCode.NONE:
            if request.leader_epoch > self.state.epoch:
                self.state.become_unattached(request.leader_epoch, now_ms)
            self._advance_election_deadline(request, now_ms)
        return EndQuorumEpochResponse(error, self.state.leader_hint, self.state.epoch)

    def _end_error(self, request: EndQuorumEpochRequest) -> ErrorCode:
        if not self.state.is_other_voter(request.leader_id):
            return ErrorCode.INCONSISTENT_VOTER_SET
        if request.leader_epoch < self.state.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if self.ignores(request.leader_epoch) else ErrorCode.NONE

    def _advance_election_deadline(self, request: EndQuorumEpochRequest, now_ms: int) -> None:
        deadline_ms = self._successor_deadline(request.preferred_successors, now_ms)
        match self.state.role:
            case Follower(leader_id) as role if leader_id == request.leader_id:
                if role.has_fetched:
                    role.successor_deadline_ms = deadline_ms
                else:
                    self._leave_ended_leader(request, now_ms, deadline_ms)
            case Unattached(int(current_ms)) as role if deadline_ms is not None:
                role.election_deadline_ms = min(current_ms, deadline_ms)
            case _:
                pass

    def _leave_ended_leader(self, request: EndQuorumEpochRequest, now_ms: int, deadline_ms: int | None) -> None:
        self.state.ended = LeaderAndEpoch(request.leader_id, request.leader_epoch)
        self.state.leave_leader(now_ms, deadline_ms)

    def _successor_deadline(self, successors: tuple[int, ...], now_ms: int) -> int | None:
        if self.state.node_id not in successors:
            return None
        position = successors.index(self.state.node_id)
        return now_ms + self.state.timing.successor_backoff(position, len(successors))

    # --- own candidacy ----------------------------------------------------------------------------

    def vote_request(self) -> VoteRequest:
        state = self.state
        pre_vote = isinstance(state.role, Prospective)
        return VoteRequest(state.node_id, state.epoch, state.log_view.end, pre_vote)

    def handle_vote_response(self, voter_id: int, request: VoteRequest, response: VoteResponse) -> None:
        match self.state.role:
            case Prospective(tally=tally) if request.pre_vote:
                tally.count(voter_id, response.vote_granted)
            case Candidate(tally=tally) if not request.pre_vote:
                tally.count(voter_id, response.vote_granted)
            case _:
                return
        self.state.peers.succeeded(voter_id)

    def advance_prospective(self, role: Prospective, now_ms: int) -> bool:
        state = self.state
        if len(role.tally.granted) >= state.voters.majority:
            state.become_candidate(now_ms)
            return True
        if self._is_lost(len(role.tally.rejected)) or now_ms >= role.election_deadline_ms:
            self._end_pre_vote(now_ms)
            return True
        return False

    def _end_pre_vote(self, now_ms: int) -> None:
        state = self.state
        if state.is_other_voter(state.election.leader_id):
            state.become_follower(state.election.leader_id, state.epoch, now_ms)
        else:
            state.leave_leader(now_ms)

    def advance_candidate(self, role: Candidate, now_ms: int) -> bool:
        state = self.state
        if len(role.tally.granted) >= state.voters.majority:
            state.become_leader(tuple(sorted(role.tally.granted)), now_ms)
            return True
        if role.backoff_deadline_ms is None and self._is_lost(len(role.tally.rejected)):
            backoff_ms = state.timing.election_backoff(state.failed_elections, state.random_below)
            role.backoff_deadline_ms = now_ms + backoff_ms
        if now_ms >= candidate_deadline_ms(role):
            state.failed_elections += 1
            state.become_prospective(now_ms)
            return True
        return False

    def _is_lost(self, rejections: int) -> bool:
        return rejections > len(self.state.voters) - self.state.voters.majority


def candidate_deadline_ms(role: Candidate) -> int:
    return role.election_deadline_ms if role.backoff_deadline_ms is None else role.backoff_deadline_ms
