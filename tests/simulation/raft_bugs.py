"""Bugs that brokers of this kind have had, one class each: the simulation is worth as much as it notices them.

Each is the working machine, or its driver, with one rule broken. The test expects some seed to end in a violation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from raft_member import Member

from sskafka.raft.elections import Elections
from sskafka.raft.following import Following
from sskafka.raft.leading import Leading
from sskafka.raft.log_view import OffsetAndEpoch, SnapshotId
from sskafka.raft.messages import FetchRequest, PeerRequest, PeerResponse, VoteRequest
from sskafka.raft.node import RaftNode
from sskafka.raft.node_state import NodeState
from sskafka.raft.progress import Progress
from sskafka.raft.ready import FlushPoint, Ready, ReplyTo
from sskafka.raft.roles import Candidate, Follower, Leader, Prospective
from sskafka.raft.voters import NO_NODE


def member_with(node_class: type[RaftNode]) -> type[Member]:
    return type(f"MemberWith{node_class.__name__}", (Member,), {"node_class": node_class})


def node_with(**parts: type) -> type[Member]:
    """A node some of whose parts (elections, following, leading) are replaced."""

    class Node(RaftNode):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            for name, part in parts.items():
                setattr(self, name, part(self.state))

    return member_with(Node)


def node_of(state_class: type[NodeState]) -> type[Member]:
    """A node whose state has another class; its slots are the same."""

    class Node(RaftNode):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            self.state.__class__ = state_class

    return member_with(Node)


# --- what is not kept ---------------------------------------------------------------------------------


class ForgetsVotes(Member):
    def persist(self, ready: Ready) -> None:
        super().persist(replace(ready, quorum_state=replace(ready.quorum_state, voted_id=NO_NODE)))


class ForgetsEpochs(Member):
    """Stores only what comes with a vote of its own."""

    def persist(self, ready: Ready) -> None:
        if ready.quorum_state.voted_id == self.node_id:
            super().persist(ready)


class AnswersBeforeSync(Member):
    def _steps(self, ready: Ready) -> Iterator[Callable[[], None]]:
        yield from super()._steps(replace(ready, quorum_state=None))
        if ready.quorum_state is not None:
            yield lambda: self.persist(ready)


class DropsLogBeforeSnapshotIsSafe(Member):
    def _install(self, snapshot_id: SnapshotId) -> Iterator[Callable[[], None]]:
        finish, restart_log = super()._install(snapshot_id)
        yield lambda: self._drop_log(snapshot_id)
        yield finish
        yield restart_log

    def _drop_log(self, snapshot_id: SnapshotId) -> None:
        self.disk.change("restart", snapshot_id)
        self.disk.sync_up_to(self.disk.mark())


class SnapshotsTheUncommitted(Member):
    def take_snapshot(self) -> None:
        end = self.disk.live.end
        if end.offset > self.disk.start_offset:
            self.disk.keep_snapshot(SnapshotId(*end), b"%024d" % self.state)
            self.disk.change("trim", SnapshotId(*end))


# --- elections ------------------------------------------------------------------------------------------


class VotesForAnyLog(Elections):
    def grants(self, request: VoteRequest) -> bool:
        return super().grants(replace(request, log_end=OffsetAndEpoch(2**60, 2**30)))


class ForgetsWhatItLost(RaftNode):
    """A voter whose log was damaged votes at once, for whoever has what is left of it."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments[:7])  # type: ignore[arg-type]


class CampaignsWithLosses(NodeState):
    """Waits for what it lost before it votes for others, but not before it asks for votes itself."""

    __slots__ = ()

    @property
    def campaigns(self) -> bool:
        return self.is_voter and not self.shutting_down


class RegainsAtTheFirstRecord(NodeState):
    """Takes itself for whole as soon as anything was fetched."""

    __slots__ = ()

    def flushed(self, point: FlushPoint) -> None:
        super().flushed(point)
        self.leader_has_no_more()


class ForgetsLossesAtRestart(Member):
    """The synced offset follows the log even before everything that was lost is there again."""

    def start(self) -> None:
        self.disk.synced_offset = self.disk.end_offset if self.disk.lost else self.disk.synced_offset
        super().start()


class VotesTwice(Elections):
    def may_vote_for(self, candidate_id: int) -> bool:
        return True

    def cast_vote(self, candidate_id: int, epoch: int, now_ms: int) -> None:
        if epoch > self.state.epoch:
            super().cast_vote(candidate_id, epoch, now_ms)


class LetsStrangersDeposeLeaders(Elections):
    """Takes over any later epoch within reason, like Raft without leader stickiness."""

    def hears_leader(self) -> bool:
        return False


class BelievesAnyEpoch(Elections):
    """Takes over any later epoch while it hears no leader."""

    def ignores(self, epoch: int) -> bool:
        return epoch > self.state.epoch and self.hears_leader()


class AcceptsStaleAnswers(RaftNode):
    def _handle_response(self, source: int, request: PeerRequest, response: PeerResponse, now_ms: int) -> None:
        self.state.peers.complete(source, request)
        self.state.learn(response.leader_id, response.leader_epoch, now_ms)
        self._dispatch_response(source, request, response, now_ms)


class TakesTheDownForSupporters(RaftNode):
    """Who is down cannot object."""

    def _peer_down(self, peer_id: int, now_ms: int) -> None:
        match self.state.role:
            case Prospective(tally=tally) | Candidate(tally=tally):
                tally.count(peer_id, granted=True)
            case _:
                super()._peer_down(peer_id, now_ms)


class SkipsElectionsWhenTold(RaftNode):
    """Leads at once when its leader is reported down, in the next epoch."""

    def _peer_down(self, peer_id: int, now_ms: int) -> None:
        state = self.state
        if state.is_voter and isinstance(state.role, Follower) and state.role.leader_id == peer_id:
            state.become_prospective(now_ms)
            state.become_candidate(now_ms)
            state.become_leader(state.voters.ids, now_ms)


class LeadsOnAfterRestart(RaftNode):
    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        state, stored, now_ms = self.state, arguments[3], arguments[4]
        if stored.leader_id == state.node_id:
            state.role = Leader(state.log_view.end.offset, Progress.of_new_leader(state.voters, state.node_id, now_ms))
            state.election = stored


class NeverResigns(Leading):
    def check_quorum_deadline_ms(self, role: Leader, now_ms: int) -> int:
        return now_ms + 100_000


# --- the log --------------------------------------------------------------------------------------------


class CommitsOlderEpochsByCount(Leading):
    def maybe_advance_high_watermark(self, role: Leader) -> None:
        if self.state.advance_high_watermark(self.committed_offset(role)):
            self._release_for_high_watermark(role)


class CountsItsUnflushedLog(Leading):
    def committed_offset(self, role: Leader) -> int:
        return role.progress.majority_offset(self.state.log_view.end.offset)


class CommitsWhatItSent(Leading):
    """Takes the end of what a follower was sent for what that follower has."""

    def _answer_with_records(self, request: FetchRequest, reply_to: ReplyTo) -> None:
        super()._answer_with_records(request, reply_to)
        role = self.state.role
        sent = role.progress.replicas.get(request.replica_id)
        if sent is not None and self.state.ready.append is None:
            sent.log_end_offset = self.state.log_view.end.offset


class IgnoresDivergence(Leading):
    """Looks at offsets only, not at the epoch of the last record."""

    def _answer_fetch(self, role: Leader, request: FetchRequest, reply_to: ReplyTo, now_ms: int) -> None:
        view = self.state.log_view
        if view.log.start_offset <= request.fetch_offset <= view.end.offset:
            self._answer_valid_fetch(role, request, reply_to, now_ms)
        else:
            super()._answer_fetch(role, request, reply_to, now_ms)


class TruncatesToHighWatermark(Following):
    def _truncate(self, diverging: OffsetAndEpoch) -> None:
        self.state.truncate_to(max(self.state.high_watermark, self.state.log_view.log.start_offset))


class TruncatesNothing(Following):
    def _truncate(self, diverging: OffsetAndEpoch) -> None:
        self.state.truncate_to(self.state.log_view.end.offset)


class FetchesBeforeFlush(RaftNode):
    def _role_requests(self) -> Iterator[tuple[int, int]]:
        if isinstance(self.state.role, Follower) and self.state.ready.flush is None:
            yield self.state.role.leader_id, 0
        else:
            yield from super()._role_requests()


class TakesLeadersHighWatermark(Following):
    """Without regard to its own log's end."""

    def _append_batches(self, response: object) -> None:
        super()._append_batches(response)
        self.state.advance_high_watermark(response.high_watermark)


@dataclass(frozen=True, slots=True)
class Bug:
    member_class: type[Member]
    first_seed: int = 0
    """Where the search starts: near a seed that shows the bug, where few do."""


KNOWN_BUGS: dict[str, Bug] = {
    "votes are forgotten": Bug(ForgetsVotes, first_seed=57),
    "epochs are forgotten": Bug(ForgetsEpochs),
    "answers leave before the sync": Bug(AnswersBeforeSync),
    "the log is dropped before the snapshot is safe": Bug(DropsLogBeforeSnapshotIsSafe, first_seed=280),
    "snapshots hold what is not committed": Bug(SnapshotsTheUncommitted),
    "any log gets a vote": Bug(node_with(elections=VotesForAnyLog)),
    "two votes in one epoch": Bug(node_with(elections=VotesTwice)),
    "a stranger deposes a live leader": Bug(node_with(elections=LetsStrangersDeposeLeaders)),
    "a stranger uses up the epochs": Bug(node_with(elections=BelievesAnyEpoch)),
    "a damaged voter votes at once": Bug(member_with(ForgetsWhatItLost)),
    "a damaged voter campaigns": Bug(node_of(CampaignsWithLosses)),
    "a damaged voter is whole too early": Bug(node_of(RegainsAtTheFirstRecord)),
    "a damaged voter forgets its loss at a restart": Bug(ForgetsLossesAtRestart),
    "stale answers count": Bug(member_with(AcceptsStaleAnswers)),
    "those who are down count as supporters": Bug(member_with(TakesTheDownForSupporters)),
    "a report replaces the election": Bug(member_with(SkipsElectionsWhenTold)),
    "a restarted leader leads on": Bug(member_with(LeadsOnAfterRestart)),
    "an isolated leader never resigns": Bug(node_with(leading=NeverResigns)),
    "older epochs are committed by count": Bug(node_with(leading=CommitsOlderEpochsByCount), first_seed=428),
    "the leader counts what it has not flushed": Bug(node_with(leading=CountsItsUnflushedLog)),
    "sent counts as received": Bug(node_with(leading=CommitsWhatItSent)),
    "divergence is not looked for": Bug(node_with(leading=IgnoresDivergence)),
    "diverging records stay": Bug(node_with(following=TruncatesNothing)),
    "followers truncate to their high watermark": Bug(node_with(following=TruncatesToHighWatermark)),
    "followers vouch for unflushed records": Bug(member_with(FetchesBeforeFlush)),
    "the leader's high watermark is taken blindly": Bug(node_with(following=TakesLeadersHighWatermark)),
}
