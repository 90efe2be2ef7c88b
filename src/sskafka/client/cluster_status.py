"""The state of a cluster: brokers, disks, quorum and partitions, and what needs attention, with the next step.

`cluster_status` asks the brokers; `find_problems` judges what they have answered. `skew_of` compares the load of the
brokers, and `machines_of` adds up the brokers of each machine.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from sskafka.client.admin import Admin
from sskafka.client.cluster import Cluster
from sskafka.client.configs import describe_topic_setting
from sskafka.client.errors import ClientError
from sskafka.client.metadata import NO_LEADER, PartitionView, TopicView
from sskafka.client.quorum import QuorumDescription, describe_quorum
from sskafka.model.errors import KafkaError
from sskafka.model.host_brokers import machine_id_of
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.describe_cluster import DescribeClusterBroker
from sskafka.wire.messages.describe_log_dirs import DescribeLogDirsResult

MIN_INSYNC_REPLICAS = "min.insync.replicas"
SILENT_VOTER_MS = 10_000
DIRECTORIES_TIMEOUT_S = 3.0
LOW_DISK_SHARE = 0.10
UNEVEN_SHARE = 0.2
"""A load is uneven if the broker with the most has this share more than the mean."""
UNEVEN_BYTES_MIN = 100_000_000
"""Smaller differences in the size of logs are not worth copying a replica."""
NAMED_MAX = 3
"""Partitions that a problem names; it counts the others."""


class DirectoryUsage(NamedTuple):
    path: str
    log_bytes: int
    total_bytes: int | None
    """Size of the file system; None if the broker does not say."""
    usable_bytes: int | None
    has_failed: bool
    is_cordoned: bool = False
    """Whether it takes no new replicas."""


class BrokerStatus(NamedTuple):
    node_id: int
    address: str
    rack: str | None
    is_fenced: bool
    is_controller: bool
    leaders: int
    replicas: int
    directories: tuple[DirectoryUsage, ...]
    """Empty if the broker did not answer."""

    @property
    def is_cordoned(self) -> bool:
        """Whether it takes no new replicas, because it is drained or about to leave."""
        return bool(self.directories) and all(usage.is_cordoned for usage in self.directories)

    @property
    def state(self) -> str:
        if self.is_fenced:
            return "fenced"
        if self.is_cordoned:
            return "drained" if self.leaders == 0 else "draining"
        return "controller" if self.is_controller else "up"


class PartitionHealth(NamedTuple):
    topics: int = 0
    partitions: int = 0
    offline: tuple[TopicPartition, ...] = ()
    under_min_isr: tuple[TopicPartition, ...] = ()
    at_min_isr: tuple[TopicPartition, ...] = ()
    """Replicated partitions that refuse acks=all as soon as one more in-sync replica fails."""
    under_replicated: tuple[TopicPartition, ...] = ()
    not_preferred: tuple[TopicPartition, ...] = ()
    """Partitions whose preferred replica is in sync, but does not lead."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class ClusterProblem(NamedTuple):
    severity: Severity
    text: str
    next_step: str


class ClusterStatus(NamedTuple):
    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerStatus, ...]
    quorum: QuorumDescription
    health: PartitionHealth
    problems: tuple[ClusterProblem, ...]


async def cluster_status(cluster: Cluster) -> ClusterStatus:
    admin = Admin(cluster)
    description = await admin.describe_cluster(include_fenced=True)
    view = await cluster.retrying(lambda: cluster.refresh(None))
    quorum = await describe_quorum(cluster)
    min_isr = await describe_topic_setting(cluster, view.topics, MIN_INSYNC_REPLICAS)
    registered = sorted(description.brokers, key=lambda broker: broker.broker_id)
    directories = await asyncio.gather(*(_directories(admin, broker) for broker in registered))
    health = partition_health(view.topics.values(), {topic: int(text) for topic, text in min_isr.items()})
    leaders, replicas = _counts(view.topics.values())
    brokers = tuple(
        BrokerStatus(
            broker.broker_id,
            f"{broker.host}:{broker.port}",
            broker.rack,
            broker.is_fenced,
            broker.broker_id == description.controller_id,
            leaders[broker.broker_id],
            replicas[broker.broker_id],
            usage,
        )
        for broker, usage in zip(registered, directories, strict=True)
    )
    problems = tuple(find_problems(brokers, quorum, health, cluster.clock.now_ms()))
    return ClusterStatus(description.cluster_id, description.controller_id, brokers, quorum, health, problems)


async def _directories(admin: Admin, broker: DescribeClusterBroker) -> tuple[DirectoryUsage, ...]:
    """Return the log directories of a broker, none if it does not answer; such a broker will be fenced soon."""
    if broker.is_fenced:
        return ()
    try:
        async with asyncio.timeout(DIRECTORIES_TIMEOUT_S):
            return tuple(_usage(result) for result in await admin.describe_log_dirs(broker.broker_id))
    except (KafkaError, ClientError, TimeoutError):
        return ()


def _usage(result: DescribeLogDirsResult) -> DirectoryUsage:
    size = sum(partition.partition_size for topic in result.topics for partition in topic.partitions)
    total, usable = (number if number >= 0 else None for number in (result.total_bytes, result.usable_bytes))
    return DirectoryUsage(result.log_dir, size, total, usable, bool(result.error_code), result.is_cordoned)


def _counts(topics: Iterable[TopicView]) -> tuple[Counter[int], Counter[int]]:
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for topic in topics:
        for partition in topic.partitions.values():
            leaders[partition.leader] += 1
            replicas.update(partition.replicas)
    return leaders, replicas


def partition_health(topics: Iterable[TopicView], min_isr: Mapping[str, int]) -> PartitionHealth:
    """Sort the partitions that are not in perfect health by what is wrong with them."""
    found: dict[str, list[TopicPartition]] = {name: [] for name in PartitionHealth._fields[2:]}
    topic_count = partition_count = 0
    for topic in topics:
        topic_count += 1
        for partition in topic.partitions.values():
            partition_count += 1
            for what in _conditions(partition, min_isr.get(topic.name, 1)):
                found[what].append(TopicPartition(topic.name, partition.partition))
    return PartitionHealth(topic_count, partition_count, **{name: tuple(sorted(at)) for name, at in found.items()})


def _conditions(partition: PartitionView, min_isr: int) -> Iterator[str]:
    in_sync = len(partition.isr)
    min_isr = min(min_isr, len(partition.replicas))  # as brokers count (KIP-966)
    if partition.leader == NO_LEADER:
        yield "offline"
    elif in_sync < min_isr:
        yield "under_min_isr"
    elif in_sync == min_isr and len(partition.replicas) > 1:
        yield "at_min_isr"
    if in_sync < len(partition.replicas):
        yield "under_replicated"
    preferred = partition.replicas[0] if partition.replicas else NO_LEADER
    if partition.leader not in {NO_LEADER, preferred} and preferred in partition.isr:
        yield "not_preferred"


def find_problems(
    brokers: Sequence[BrokerStatus], quorum: QuorumDescription, health: PartitionHealth, now_ms: int
) -> Iterator[ClusterProblem]:
    """Return what needs attention: errors first, then warnings."""
    found = [*_partition_problems(health), *_broker_problems(brokers), *_quorum_problems(quorum, now_ms)]
    return iter(sorted(found, key=lambda problem: problem.severity is not Severity.ERROR))


def _partition_problems(health: PartitionHealth) -> Iterator[ClusterProblem]:
    if health.offline:
        yield ClusterProblem(
            Severity.ERROR,
            f"{_partitions(health.offline)} without a leader: clients can neither write nor read",
            "start the brokers that have the replicas; if they are lost for good, `sskafka cluster elect-leaders "
            "--unclean` elects any live replica and loses records",
        )
    if health.under_min_isr:
        yield ClusterProblem(
            Severity.ERROR,
            f"{_partitions(health.under_min_isr)} with fewer in-sync replicas than {MIN_INSYNC_REPLICAS}: producers "
            "with acks=all are refused",
            "start the missing brokers, or lower min.insync.replicas of these topics",
        )
    if health.under_replicated:
        yield ClusterProblem(
            Severity.WARNING,
            f"{_partitions(health.under_replicated)} with replicas that are not in sync",
            "start the missing brokers; replicas on running brokers rejoin the ISR when they have caught up",
        )
    if health.not_preferred:
        yield ClusterProblem(
            Severity.WARNING,
            f"{_partitions(health.not_preferred)} not led by the preferred replica",
            "`sskafka cluster elect-leaders` moves leadership there",
        )


def _broker_problems(brokers: Sequence[BrokerStatus]) -> Iterator[ClusterProblem]:
    for broker in brokers:
        if broker.is_fenced:
            yield ClusterProblem(
                Severity.ERROR,
                f"broker {broker.node_id} ({broker.address}) is fenced: it sends no heartbeats",
                f"start it, or remove it with `sskafka cluster unregister {broker.node_id}`",
            )
        for usage in broker.directories:
            if usage.has_failed:
                yield ClusterProblem(
                    Severity.ERROR,
                    f"broker {broker.node_id} cannot use the log directory {usage.path}",
                    "repair the disk and restart the broker; its log says what failed",
                )
            elif usage.total_bytes and (usage.usable_bytes or 0) < LOW_DISK_SHARE * usage.total_bytes:
                share = 100 * (usage.usable_bytes or 0) // usage.total_bytes
                yield ClusterProblem(
                    Severity.WARNING,
                    f"broker {broker.node_id} has {share}% of the disk of {usage.path} left",
                    "lower retention.ms or retention.bytes, add a log directory, or move partitions away",
                )


def silent_voters(quorum: QuorumDescription, now_ms: int) -> list[int]:
    """Return the voters that have not fetched from the leader of the quorum for `SILENT_VOTER_MS`."""
    return [
        voter.node_id
        for voter in quorum.voters
        if voter.node_id != quorum.leader_id and now_ms - voter.last_fetch_timestamp > SILENT_VOTER_MS
    ]


def _quorum_problems(quorum: QuorumDescription, now_ms: int) -> Iterator[ClusterProblem]:
    silent = silent_voters(quorum, now_ms)
    if not silent:
        return
    spare = len(quorum.voters) - len(silent) - (len(quorum.voters) // 2 + 1)
    means = "one more failure stops the controllers" if spare == 0 else f"{spare} more may fail"
    yield ClusterProblem(
        Severity.ERROR if spare == 0 else Severity.WARNING,
        f"quorum voters {', '.join(map(str, silent))} have not fetched for {SILENT_VOTER_MS // 1000} s; {means}",
        "start them; `sskafka metadata quorum` shows their lag",
    )


def _partitions(at: Sequence[TopicPartition]) -> str:
    named = ", ".join(map(str, at[:NAMED_MAX]))
    more = f" and {len(at) - NAMED_MAX} more" if len(at) > NAMED_MAX else ""
    return f"{len(at)} partition{'s' if len(at) > 1 else ''} ({named}{more})"


class MachineStatus(NamedTuple):
    """The brokers of one machine (`--brokers-per-host`) taken together."""

    host: str
    rack: str | None
    broker_ids: tuple[int, ...]
    fenced: int
    """Number of brokers of the machine that are fenced."""
    leaders: int
    replicas: int
    log_bytes: int


def machines_of(brokers: Iterable[BrokerStatus]) -> list[MachineStatus]:
    """Return the machines with several brokers: those whose ids and host say that they belong together."""
    together: dict[tuple[str, int], list[BrokerStatus]] = {}
    for broker in brokers:
        host = broker.address.rpartition(":")[0]
        together.setdefault((host, machine_id_of(broker.node_id)), []).append(broker)
    return [_machine(host, members) for (host, _), members in together.items() if len(members) > 1]


def _machine(host: str, members: list[BrokerStatus]) -> MachineStatus:
    return MachineStatus(
        host,
        members[0].rack,
        tuple(broker.node_id for broker in members),
        sum(broker.is_fenced for broker in members),
        sum(broker.leaders for broker in members),
        sum(broker.replicas for broker in members),
        sum(usage.log_bytes for broker in members for usage in broker.directories),
    )


class Spread(NamedTuple):
    """The least and the most that one broker has."""

    least: int
    most: int
    mean: float

    def is_uneven(self, difference_min: int) -> bool:
        return self.most - self.least >= difference_min and self.most > (1 + UNEVEN_SHARE) * self.mean


class Skew(NamedTuple):
    """How evenly leaders, replicas and bytes are spread over the brokers that take replicas."""

    leaders: Spread
    replicas: Spread
    log_bytes: Spread

    @property
    def uneven(self) -> tuple[str, ...]:
        """The goals of a rebalance that may reduce the skew, by what skew costs most; empty if the load is even."""
        found = {
            "bytes": self.log_bytes.is_uneven(UNEVEN_BYTES_MIN),
            "replicas": self.replicas.is_uneven(2),
            "leaders": self.leaders.is_uneven(2),
        }
        return tuple(goal for goal, is_uneven in found.items() if is_uneven)


def skew_of(brokers: Iterable[BrokerStatus]) -> Skew | None:
    """Compare the brokers that are up and not drained; None if there are fewer than two."""
    compared = [broker for broker in brokers if not broker.is_fenced and not broker.is_cordoned]
    if len(compared) < 2:
        return None
    return Skew(
        _spread([broker.leaders for broker in compared]),
        _spread([broker.replicas for broker in compared]),
        _spread([sum(usage.log_bytes for usage in broker.directories) for broker in compared]),
    )


def _spread(values: Sequence[int]) -> Spread:
    return Spread(min(values), max(values), sum(values) / len(values))
