"""Votes over HTTP: the Raft state machine of this node votes for a candidate and accepts a leader that callers name.

A granted vote is real: it is on disk before the answer is sent. Callers can change epochs, never the log.

On the private socket between the broker and its HTTP process:

    vote           {"candidate", "epoch", "up_to_date"}    -> {"granted", "leader_id", "leader_epoch"}
    begin_epoch    {"leader", "epoch"}                     -> {"accepted", "leader_id", "leader_epoch"}
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sskafka.controller.node_control import NodeControl
from sskafka.model.values import value
from sskafka.raft.election_state import ElectionState
from sskafka.raft.elections import Elections
from sskafka.raft.messages import LocalRequest, LocalResponse
from sskafka.raft.node_state import EPOCH_JUMP_MAX, NodeState
from sskafka.raft.voters import NO_NODE
from sskafka.servers.local.server import Answer


@value
class LabVoteResponse(LocalResponse):
    granted: bool
    leader_id: int = NO_NODE
    leader_epoch: int = 0


@value
class LabLeaderResponse(LocalResponse):
    accepted: bool
    leader_id: int = NO_NODE
    leader_epoch: int = 0


@value
class LabVoteRequest(LocalRequest):
    """A vote without a pre-vote, granted even while the leader is alive.

    The lab numbers log entries differently, so the caller decides whether the candidate's log is up to date.
    """

    candidate_id: int
    epoch: int
    log_is_up_to_date: bool

    def answer(self, elections: Elections, now_ms: int) -> LabVoteResponse:
        if self._is_granted(elections):
            elections.cast_vote(self.candidate_id, self.epoch, now_ms)
            return LabVoteResponse(granted=True)
        election = elections.state.election
        return LabVoteResponse(False, election.last_leader_id, election.last_leader_epoch)

    def _is_granted(self, elections: Elections) -> bool:
        """Return whether the vote is granted. A rejection does not change the epoch: nobody waits for this node to
        catch up."""
        state = elections.state
        if not state.is_voter or state.lost_end is not None or not self.log_is_up_to_date:
            return False
        if not _is_plausible(state, self.epoch):
            return False
        if self.epoch == state.epoch:
            return elections.may_vote_for(self.candidate_id)
        return self.epoch > state.epoch


@value
class LabLeaderRequest(LocalRequest):
    """A leader that a caller names. If no quorum has elected it, the next election corrects that."""

    leader_id: int
    leader_epoch: int

    def answer(self, elections: Elections, now_ms: int) -> LabLeaderResponse:
        state = elections.state
        if not self._is_accepted(state):
            return LabLeaderResponse(False, state.election.last_leader_id, state.election.last_leader_epoch)
        if not self._is_last_leader(state.election):
            self._follow(state, now_ms)
        return LabLeaderResponse(accepted=True)

    def _is_accepted(self, state: NodeState) -> bool:
        """Observers reject: in an epoch of its own, an observer would wait for an election that no voter starts."""
        if not state.is_voter or self.leader_epoch < state.epoch or not _is_plausible(state, self.leader_epoch):
            return False
        return self._is_last_leader(state.election) or self.leader_epoch > state.election.last_leader_epoch

    def _is_last_leader(self, election: ElectionState) -> bool:
        return (election.last_leader_id, election.last_leader_epoch) == (self.leader_id, self.leader_epoch)

    def _follow(self, state: NodeState, now_ms: int) -> None:
        """Follow another voter. If this node itself or an unknown node is named, only wait for the next election."""
        if state.is_other_voter(self.leader_id):
            state.become_follower(self.leader_id, self.leader_epoch, now_ms)
            return
        if self.leader_epoch > state.epoch:
            state.become_unattached(self.leader_epoch, now_ms)
        named = replace(state.election, last_leader_id=self.leader_id, last_leader_epoch=state.epoch)
        state.remember(named)


def _is_plausible(state: NodeState, epoch: int) -> bool:
    """Return whether the other voters would accept the epoch. A node in an epoch that they reject could not rejoin
    them."""
    return epoch <= state.epoch + EPOCH_JUMP_MAX


class VoteAnswers:
    """Answers the HTTP process on the private socket."""

    def __init__(self, control: NodeControl) -> None:
        self._control = control

    def table(self) -> dict[str, Answer]:
        return {"vote": self.vote, "begin_epoch": self.begin_epoch}

    async def vote(self, details: Mapping[str, Any]) -> dict[str, Any]:
        request = LabVoteRequest(details["candidate"], details["epoch"], details["up_to_date"])
        response = await self._control.ask_raft(request)
        assert isinstance(response, LabVoteResponse)
        return {"granted": response.granted, **_leader(response)}

    async def begin_epoch(self, details: Mapping[str, Any]) -> dict[str, Any]:
        response = await self._control.ask_raft(LabLeaderRequest(details["leader"], details["epoch"]))
        assert isinstance(response, LabLeaderResponse)
        return {"accepted": response.accepted, **_leader(response)}


def _leader(response: LabVoteResponse | LabLeaderResponse) -> dict[str, Any]:
    return {"leader_id": response.leader_id, "leader_epoch": response.leader_epoch}
