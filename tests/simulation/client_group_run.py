"""One seeded life of a group of bundled consumers: they come, go, crash, get busy and lose messages; then calm.

Checked all the time
- a partition has one owner: whoever still reads it when another member is assigned it can no longer commit;
- offsets never go back;
- without losses, crashes and busy members, every record is read exactly once.

Checked at the end, when nothing goes wrong any more: every partition has one owner among the members that live, shares
are even, and nobody has given up.
"""

from random import Random
from typing import Any

from client_member import MAX_POLL_MS, ClientMember
from consumer_lab import ConsumerLab

from sskafka.client.group.membership import OwnedPartitions
from sskafka.groups.group_settings import ConsumerTimings
from sskafka.model.ids import TopicPartition

PARTITIONS = 6
MEMBERS_MAX = 4
FAULTS = 25
CALM_MS = 90_000
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": "range"},
    "roundrobin": {"partition_assignment_strategy": "roundrobin"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer": {"group_protocol": "consumer"},
}


class ClientGroupRun:
    def __init__(self, seed: int, protocol: str) -> None:
        self.name = f"seed {seed}, {protocol}"
        self.random = Random(f"{seed} {protocol}")
        self.loss = self.random.choice([0.0, 0.0, 0.05, 0.2])
        self.is_gentle = self.loss == 0 and self.random.random() < 0.5
        """Members only join and leave."""
        timings = ConsumerTimings(session_timeout_ms=6_000, heartbeat_interval_ms=1_000, assignment_interval_ms=0)
        self.lab = ConsumerLab({"t": PARTITIONS}, consumer_timings=timings, session_timeout_min_ms=1_000)
        self.members: list[ClientMember] = []
        self.protocol = protocol
        self.commits = self.assignments = self.failovers = 0
        self._offsets: dict[TopicPartition, int] = {}
        self._read_to: dict[TopicPartition, int] = {}
        self._numbers = 0

    def _check(self, condition: bool, problem: str) -> None:
        assert condition, f"{self.name} at {self.lab.time.monotonic_ms():.0f} ms: {problem}"

    @property
    def alive(self) -> list[ClientMember]:
        return [member for member in self.members if member.is_alive]

    # -- what members tell

    def assigned(self, member: ClientMember, partitions: OwnedPartitions) -> None:
        self.assignments += 1
        for other in self.members:
            for partition in partitions:
                is_second = other is not member and other.is_valid_owner(partition)
                self._check(not is_second, f"{partition} is owned by {other.name} and {member.name}")

    def read(self, member: ClientMember, partition: TopicPartition, start: int, end: int) -> None:
        if self.is_gentle:
            before = self._read_to.get(partition, 0)
            self._check(start == before, f"{member.name} reads {partition} from {start}, but {before} is next")
        self._read_to[partition] = end

    def committed(self, member: ClientMember, partition: TopicPartition, offset: int) -> None:
        self.commits += 1
        before = self._offsets.get(partition, 0)
        self._check(offset >= before, f"the offset of {partition} went back from {before} to {offset}")
        self._offsets[partition] = offset

    # -- what happens

    def run(self) -> "ClientGroupRun":
        self._add()
        for _ in range(FAULTS):
            self.lab.time.run_for(self.random.uniform(100, 8_000))
            self.random.choice([self._add, self._leave] if self.is_gentle else self._faults())()
        self.loss = 0.0
        if not self.alive:
            self._add()
        self.lab.time.run_for(CALM_MS)
        self._check_calm()
        return self

    def _faults(self) -> list[Any]:
        return [self._add, self._leave, self._crash, self._busy, self._fail_over]

    def _add(self) -> None:
        if len(self.alive) < MEMBERS_MAX:
            self._numbers += 1
            name = f"member {self._numbers}"
            self.members.append(ClientMember(name, self.lab, self.random, self, PROTOCOLS[self.protocol]))

    def _leave(self) -> None:
        if self.alive:
            self.random.choice(self.alive).close()

    def _crash(self) -> None:
        if self.alive:
            self.random.choice(self.alive).crash()

    def _busy(self) -> None:
        """Do not poll for a while, often for longer than `max.poll.interval.ms`."""
        if self.alive:
            until_ms = self.lab.time.monotonic_ms() + self.random.uniform(0.2, 2) * MAX_POLL_MS
            self.random.choice(self.alive).busy_until_ms = until_ms

    def _fail_over(self) -> None:
        self.failovers += 1
        self.lab.fail_over()

    # -- when it is over

    def _check_calm(self) -> None:
        for member in self.alive:
            self._check(member.core.failure is None, f"{member.name} has given up: {member.core.failure}")
        shares = {member.name: len(member.core.owned) for member in self.alive}
        owned = sorted(partition.partition for member in self.alive for partition in member.core.owned)
        self._check(owned == list(range(PARTITIONS)), f"not every partition is owned once: {owned}, {shares}")
        self._check(max(shares.values()) - min(shares.values()) <= 1, f"shares are uneven: {shares}")


def run_client_group(seed: int, protocol: str) -> ClientGroupRun:
    return ClientGroupRun(seed, protocol).run()
