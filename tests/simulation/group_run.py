"""One seeded life of a classic group: members come, go, crash and are cut off, coordinators change; then calm.

Checked all the time
- one assignment a generation: no partition is handed to two members of the same generation;
- offsets never go back: what a member of an older generation commits late is refused;
- timers watch only what is there: sessions of members and of ids given out, rebalances under way.

Checked at the end, when nothing goes wrong any more: the group is stable, has exactly the members that live, each
partition has one owner, and nobody waits for an answer.
"""

from random import Random

from group_lab import GROUP, Asked, GroupLab
from group_member import PARTITIONS, SimulatedMember

from sskafka.groups.classic_group import ClassicGroup, State

FAULTS = 25
CALM_MS = 120_000


class GroupRun:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loss = self.random.choice([0.0, 0.05, 0.2])
        self.lab = GroupLab(
            initial_rebalance_delay_ms=self.random.choice([0, 500, 3_000]), session_timeout_min_ms=1_000
        )
        self.members: list[SimulatedMember] = []
        self.owners: dict[tuple[int, int], str] = {}
        self.offsets: dict[int, int] = {}
        self.commits = 0
        self.generations: set[int] = set()
        self.failovers = 0
        self._asked: list[Asked] = []
        self._faults = [
            self._add_member,
            self._crash,
            self._crash_when_joined,
            self._leave,
            self._restart_static,
            self._fail_over,
        ]

    # -- what members are told

    def asked(self, asked: Asked) -> None:
        self._asked.append(asked)

    def assigned(self, member: SimulatedMember, generation: int, share: bytes) -> None:
        self.generations.add(generation)
        for partition in share:
            owner = self.owners.setdefault((generation, partition), member.member_id)
            is_same = owner == member.member_id or self._is_same_instance(owner, member)
            self._check(is_same, f"partition {partition} is owned twice in generation {generation}")

    def _is_same_instance(self, owner: str, member: SimulatedMember) -> bool:
        return member.instance_id is not None and owner.startswith(f"{member.instance_id}-")

    def committed(self, member: SimulatedMember, partition: int, offset: int) -> None:
        self.commits += 1
        before = self.offsets.get(partition, 0)
        self._check(offset >= before, f"the offset of partition {partition} went back from {before} to {offset}")
        self.offsets[partition] = offset

    # -- the run

    def run(self) -> None:
        for _ in range(self.random.randint(1, 5)):
            self._add_member()
        for _ in range(FAULTS):
            self.lab.time.run_for(self.random.choice([50, 3_000, 10_000, 20_000]), self._check_timers)
            self.random.choice(self._faults)()
        self.loss = 0.0
        for member in self._living():
            member.dies_when_joined = False
        if not self._living():
            self._add_member()
        self.lab.time.run_for(CALM_MS, self._check_timers)
        self._check_calm()

    def _add_member(self, instance_id: str | None = None) -> None:
        number = len(self.members)
        if instance_id is None and self.random.random() < 0.3:
            instance_id = f"static{number}"
        self.members.append(SimulatedMember(f"m{number}", self.lab, self.random, self, instance_id))

    def _living(self) -> list[SimulatedMember]:
        return [member for member in self.members if member.is_alive]

    def _crash(self) -> None:
        if self._living():
            self.random.choice(self._living()).crash()

    def _crash_when_joined(self) -> None:
        """Between JoinGroup and SyncGroup, where the others wait for it."""
        if self._living():
            self.random.choice(self._living()).dies_when_joined = True
        self._add_member()

    def _leave(self) -> None:
        if self._living():
            self.random.choice(self._living()).leave()

    def _restart_static(self) -> None:
        """The old one may not have noticed that there is a new one."""
        static = [member for member in self._living() if member.instance_id is not None]
        if static:
            member = self.random.choice(static)
            if self.random.random() < 0.7:
                member.crash()
            self._add_member(member.instance_id)

    def _fail_over(self) -> None:
        self.failovers += 1
        self.lab.fail_over()

    # -- checks

    def _check_timers(self) -> None:
        group = self.lab.shard.groups.get(GROUP)
        if not isinstance(group, ClassicGroup):
            return
        watched = {*group.members, *group.pending_members}
        for key in self.lab.timers.pending:
            kind = key[0] if isinstance(key, tuple) else key
            if kind == "session":
                assert isinstance(key, tuple)
                self._check(key[2] in watched, f"a timer watches {key[2]}, who is gone")
            elif kind == "join":
                self._check(group.state is State.PREPARING, f"a join timer runs in {group.state}")
            elif kind == "sync":
                in_time = group.state in {State.COMPLETING, State.STABLE}
                self._check(in_time, f"a sync timer runs in {group.state}")

    def _check_calm(self) -> None:
        group = self.lab.group
        living = {member.member_id for member in self._living()}
        self._check(group.state is State.STABLE, f"the group is {group.state}")
        self._check(set(group.members) == living, f"members are {set(group.members)}, living are {living}")
        unanswered = [asked for asked in self._asked if not asked.is_answered]
        self._check(not unanswered, f"{len(unanswered)} requests were never answered, somebody still waits")
        owned = sorted(partition for member in group.members.values() for partition in member.assignment)
        self._check(owned == list(range(PARTITIONS)), f"owned are {owned}")

    def _check(self, is_right: bool, what: str) -> None:
        assert is_right, f"seed {self.seed}: {what}"


def run_seed(seed: int) -> GroupRun:
    run = GroupRun(seed)
    run.run()
    return run
