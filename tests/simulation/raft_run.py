"""One simulated life of a quorum: a while with faults, then none, after which it must work again."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from raft_cluster import Cluster, Weather
from raft_invariants import InvariantError, require
from raft_member import Member
from raft_stranger import Stranger

from sskafka.lab.votes import LabLeaderRequest, LabVoteRequest
from sskafka.raft.node import RequestReceived
from sskafka.raft.timing import Timing

HEALING_MS = 40_000

_CALM = Weather()
_WEATHERS = (
    _CALM,
    Weather(delay_ms=20, fatal_percent=20),
    Weather(loss_percent=8, slow_percent=5, duplicate_percent=5, fatal_percent=5),
    Weather(delay_ms=40, loss_percent=15, slow_percent=20, slow_delay_ms=2500, duplicate_percent=15, flush_ms=150),
)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a run goes: its timeouts, and all that happens to the cluster in proportion to them."""

    timing: Timing
    faults_ms: int
    fault_gap_ms: int
    proposal_gap_ms: int
    outage_ms: int


_BITES = Timing(fetch_max_bytes=1, fetch_snapshot_max_bytes=10)
_HASTY = replace(
    _BITES, election_timeout_ms=150, fetch_timeout_ms=500, election_backoff_max_ms=80, request_timeout_ms=300
)
_QUARRELSOME = replace(
    _BITES, election_timeout_ms=25, fetch_timeout_ms=200, election_backoff_max_ms=20, request_timeout_ms=100
)
_PACES = (
    Pace(replace(_BITES, fetch_max_bytes=40), 16_000, fault_gap_ms=1600, proposal_gap_ms=250, outage_ms=5000),
    Pace(_HASTY, 8_000, fault_gap_ms=500, proposal_gap_ms=120, outage_ms=1500),
    Pace(_QUARRELSOME, 4_000, fault_gap_ms=250, proposal_gap_ms=60, outage_ms=600),
)


class Run:
    def __init__(self, seed: int, member_class: type[Member] = Member) -> None:
        self.seed = seed
        self.random = Random(f"faults of {seed}")
        voters = 3 if self.random.randrange(10) < 7 else 5
        observers = self.random.randrange(3)
        weather = _WEATHERS[self.random.randrange(len(_WEATHERS))]
        self.pace = _PACES[self.random.randrange(len(_PACES))]
        self.has_lab = self.random.randrange(6) == 0
        self.has_liar = self.random.randrange(3) == 0
        self.is_damaging = seed % 5 == 2
        self.stranger = Stranger(seed) if seed % 4 == 1 else None
        self.cluster = Cluster(seed, voters, observers, weather, self.pace.timing, member_class)

    def execute(self) -> Cluster:
        """Raises InvariantError, with the seed and the last events, when something does not hold."""
        try:
            self._execute()
        except Exception as problem:
            name = problem.name if isinstance(problem, InvariantError) else type(problem).__name__
            text = f"{problem}\n{self.cluster.describe_trace()}\nSEED={self.seed} replays this run"
            raise InvariantError(name, text) from problem
        return self.cluster

    def _execute(self) -> None:
        cluster = self.cluster
        cluster.start_all()
        self._plan_faults()
        self._plan_proposals()
        self._plan_snapshots()
        self._plan_claims()
        cluster.run_until(self.pace.faults_ms)
        self._heal()
        self._must_work_again()

    # --- what happens to the cluster --------------------------------------------------------------------

    def _plan_faults(self) -> None:
        faults = [self._crash, self._crash, self._crash_halfway, self._partition, self._cut_one_way, self._heal_network]
        faults += [self._isolate_leader, self._pause, self._shut_down, self._resign, self._crash_all]
        if self.has_lab:
            faults += [self._vote_from_lab, self._report_leader_from_lab] * 2
        if self.has_liar:
            faults += [self._tell_falsehoods] * 8
        if self.is_damaging:
            faults += [self._damage] * 6
        for at_ms in self._times(self.pace.fault_gap_ms):
            self.cluster.at(at_ms, faults[self.random.randrange(len(faults))])

    def _plan_proposals(self) -> None:
        for at_ms in self._times(self.pace.proposal_gap_ms):
            self.cluster.at(at_ms, self.cluster.propose)

    def _times(self, gap_max_ms: int) -> Iterator[int]:
        at_ms = 1 + self.random.randrange(gap_max_ms)
        while at_ms < self.pace.faults_ms:
            yield at_ms
            at_ms += 1 + self.random.randrange(gap_max_ms)

    def _plan_snapshots(self) -> None:
        for _ in range(self.random.randrange(30)):
            self.cluster.at(self.random.randrange(self.pace.faults_ms), self._take_snapshot)

    def _plan_claims(self) -> None:
        if self.stranger is not None:
            for at_ms in self.stranger.times(self.pace.faults_ms):
                self.cluster.at(at_ms, self._claim)

    def _claim(self) -> None:
        """A stranger claims to be a voter."""
        listening = [member for member in self.cluster.up_members() if member.paused_until_ms <= self.cluster.now_ms]
        if self.stranger is not None and listening:
            self.stranger.claim(self.cluster, listening)

    def _take_snapshot(self) -> None:
        member = self._some_up_member()
        if member is not None:
            member.take_snapshot()

    def _some_up_member(self) -> Member | None:
        members = self.cluster.leaders() if self.random.randrange(2) else self.cluster.up_members()
        return members[self.random.randrange(len(members))] if members else None

    def _restart_later(self, member: Member) -> None:
        self.cluster.at(self.random.randrange(self.pace.outage_ms), lambda: self.cluster.start(member))

    def _crash(self) -> None:
        member = self._some_up_member()
        if member is not None:
            self.cluster.crash(member)
            self._restart_later(member)

    def _damage(self) -> None:
        """A node dies and a bit of its log flips. A majority of the voters stays undamaged."""
        member = self._some_up_member()
        if member is None or self._damaged_voters() >= len(self.cluster.voter_ids) - self.cluster.history.majority:
            return
        self.cluster.crash(member)
        member.damage()
        self.cluster.note("damaged", (member.node_id, member.disk.end_offset, member.disk.synced_offset))
        self._restart_later(member)

    def _damaged_voters(self) -> int:
        return sum(bool(disk.lost) for disk in self.cluster.disks_of_voters())

    def _crash_halfway(self) -> None:
        """Die within one of the next Readys, between two of its steps."""
        member = self._some_up_member()
        if member is not None:
            member.steps_to_crash = self.random.randrange(12)
            self._restart_later(member)

    def _crash_all(self) -> None:
        if self.random.randrange(3) == 0:
            for member in self.cluster.up_members():
                self.cluster.crash(member)
                self._restart_later(member)

    def _partition(self) -> None:
        ids = list(self.cluster.members)
        side = {node_id for node_id in ids if self.random.randrange(2)}
        self.cluster.cut = {(a, b) for a in ids for b in ids if (a in side) != (b in side)}
        self.cluster.note("partition", side)

    def _isolate_leader(self) -> None:
        """Others go on without it, while it still takes records that nobody gets."""
        leader_ids = {member.node_id for member in self.cluster.leaders()}
        ids = list(self.cluster.members)
        self.cluster.cut = {(a, b) for a in ids for b in ids if a in leader_ids or b in leader_ids}
        self.cluster.note("isolated", leader_ids)

    def _cut_one_way(self) -> None:
        ids = list(self.cluster.members)
        for _ in range(1 + self.random.randrange(3)):
            source, target = self.random.sample(ids, 2)
            self.cluster.cut.add((source, target))
            self.cluster.note("cut", (source, target))

    def _heal_network(self) -> None:
        self.cluster.cut = set()

    def _pause(self) -> None:
        member = self._some_up_member()
        if member is not None:
            member.paused_until_ms = self.cluster.now_ms + self.random.randrange(self.pace.outage_ms)

    def _shut_down(self) -> None:
        member = self._some_up_member()
        if member is not None and member.paused_until_ms <= self.cluster.now_ms:
            patience_ms = self.pace.outage_ms // 3
            member.shutdown_deadline_ms = self.cluster.now_ms + patience_ms
            self.cluster.act(member, lambda: member.node.shutdown(self.cluster.now_ms))
            self.cluster.at(patience_ms, lambda: self.cluster.end_shutdown(member))
            self.cluster.at(patience_ms + self.random.randrange(patience_ms), lambda: self.cluster.start(member))

    def _resign(self) -> None:
        for member in self.cluster.leaders():
            self.cluster.act(member, lambda member=member: member.node.resign(self.cluster.now_ms))

    def _tell_falsehoods(self) -> None:
        """Report nodes as down that may be up to members, a few times in quick succession."""
        for _ in range(1 + self.random.randrange(6)):
            member = self._some_up_member()
            if member is not None:
                node_id = self.random.choice(list(self.cluster.members))
                self.cluster.hint(member, node_id, self.random.randrange(60))

    # --- lab API -----------------------------------------------------------------------------------

    def _vote_from_lab(self) -> None:
        member = self._some_up_member()
        if member is not None:
            epoch = max(0, member.node.epoch + self.random.randrange(-1, 4))
            candidate_id = 1 + self.random.randrange(6)
            request = LabVoteRequest(candidate_id, epoch, log_is_up_to_date=self.random.randrange(4) > 0)
            self.cluster.receive(member, RequestReceived(request, LabHandle(request)))

    def _report_leader_from_lab(self) -> None:
        member = self._some_up_member()
        if member is not None:
            epoch = max(0, member.node.epoch + self.random.randrange(-1, 4))
            request = LabLeaderRequest(1 + self.random.randrange(6), epoch)
            self.cluster.receive(member, RequestReceived(request, LabHandle(request)))

    # --- afterwards -----------------------------------------------------------------------------------------

    def _heal(self) -> None:
        cluster = self.cluster
        cluster.cut = set()
        cluster.weather = replace(_CALM)
        for member in cluster.members.values():
            member.steps_to_crash = None
            member.shutdown_deadline_ms = None
            member.paused_until_ms = min(member.paused_until_ms, cluster.now_ms)
            if member.is_up and member.node.state.shutting_down:
                cluster.crash(member)
            cluster.start(member)

    def _must_work_again(self) -> None:
        """A leader is elected, and a record proposed to it reaches every node."""
        cluster = self.cluster
        goal = len(cluster.history.acknowledged) + 1
        deadline_ms = cluster.now_ms + HEALING_MS
        self._plan_retries()
        reached = cluster.run_until(deadline_ms, lambda: len(cluster.history.acknowledged) >= goal)
        require(reached, "liveness: records commit again", self._describe_nodes())
        require(cluster.run_until(deadline_ms, self._all_caught_up), "liveness: all catch up", self._describe_nodes())
        for batch in cluster.history.acknowledged:
            kept = batch in cluster.history.committed
            require(kept, "acknowledged records survive", f"{batch} is gone")

    def _plan_retries(self) -> None:
        for at_ms in range(0, HEALING_MS, 500):
            self.cluster.at(at_ms, self._propose_if_unacknowledged)
        self._goal = len(self.cluster.history.acknowledged) + 1

    def _propose_if_unacknowledged(self) -> None:
        if len(self.cluster.history.acknowledged) < self._goal:
            self.cluster.propose()

    def _all_caught_up(self) -> bool:
        end_offset = self.cluster.history.committed[-1].end_offset
        members = self.cluster.members.values()
        return all(member.is_up and member.applied_offset >= end_offset for member in members)

    def _describe_nodes(self) -> str:
        return "; ".join(
            f"{member.node_id} {member.node.role_name} {member.node.election} applied {member.applied_offset}"
            for member in self.cluster.up_members()
        )


class DamagedRun(Run):
    """Any number of voters may be damaged at the same time. What is committed never changes, but there may be no voter
    left that could lead."""

    def __init__(self, seed: int, member_class: type[Member] = Member) -> None:
        super().__init__(seed, member_class)
        self.is_damaging = True

    def _damaged_voters(self) -> int:
        return 0

    def _must_work_again(self) -> None:
        self.cluster.run_until(self.cluster.now_ms + HEALING_MS // 4)


class LabHandle:
    """Receives responses to lab requests. They are not needed here, but the vote counts."""

    def __init__(self, request: LabVoteRequest | LabLeaderRequest) -> None:
        self.request = request


def run_seed(seed: int, member_class: type[Member] = Member) -> Cluster:
    return Run(seed, member_class).execute()
