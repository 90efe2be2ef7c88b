"""`sskafka cluster status`: the health of a cluster on one screen, and what to do next.

The exit code is 0 if nothing needs attention and 3 if something does. Other codes mean that the command failed.
"""

from typing import Any

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_heading, print_table
from sskafka.cli.sizes import size_text
from sskafka.cli.watching import WatchOption, watch_cluster
from sskafka.client.balance.reading import read_layout
from sskafka.client.balance.replicas import Goal, plan_rebalance
from sskafka.client.cluster import Cluster
from sskafka.client.cluster_status import (
    BrokerStatus,
    ClusterStatus,
    MachineStatus,
    Skew,
    cluster_status,
    machines_of,
    skew_of,
)
from sskafka.client.quorum import QuorumDescription

NEEDS_ATTENTION = 3
BROKER_COLUMNS = ("BROKER", "ADDRESS", "RACK", "STATE", "LEADERS", "REPLICAS", "LOGS", "DISK FREE")


def status(
    watch: WatchOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the health of the cluster and what needs attention; exit code 3 if something does."""

    async def ask(cluster: Cluster) -> tuple[ClusterStatus, Goal | None]:
        found = await cluster_status(cluster)
        return found, await _goal_against_skew(cluster, found)

    found, _ = watch_cluster(bootstrap, properties, watch, ask, lambda asked: _show(*asked, output))
    if found.problems:
        raise typer.Exit(NEEDS_ATTENTION)


async def _goal_against_skew(cluster: Cluster, found: ClusterStatus) -> Goal | None:
    """Return a goal of `topic rebalance` that reduces the skew; None if a move cannot, as of one large partition."""
    skew = skew_of(found.brokers)
    if skew is None or not skew.uneven:
        return None
    layout = await read_layout(cluster)
    for goal in map(Goal, skew.uneven):
        moves = plan_rebalance(layout, goal)
        if any(move.added or goal is Goal.LEADERS for move in moves):
            return goal
    return None


def _show(found: ClusterStatus, goal: Goal | None, output: Format) -> None:
    if output.is_data:
        print_data(output, status_json(found, goal))
    else:
        _print(found, goal)


def status_json(found: ClusterStatus, goal: Goal | None) -> dict[str, Any]:
    health, skew = found.health, skew_of(found.brokers)
    partitions = {
        name: [str(partition) for partition in at] for name, at in health._asdict().items() if isinstance(at, tuple)
    }
    return {
        "cluster_id": found.cluster_id,
        "controller_id": found.controller_id,
        "brokers": [broker_json(broker) for broker in found.brokers],
        "machines": [machine._asdict() for machine in machines_of(found.brokers)],
        "quorum": {
            "leader_id": found.quorum.leader_id,
            "leader_epoch": found.quorum.leader_epoch,
            "voters": [voter._asdict() for voter in found.quorum.voters],
        },
        "topics": health.topics,
        "partitions": {"count": health.partitions, **partitions},
        "skew": None if skew is None else {name: spread._asdict() for name, spread in skew._asdict().items()},
        "rebalance_by": goal,
        "problems": [problem._asdict() for problem in found.problems],
    }


def broker_json(broker: BrokerStatus) -> dict[str, Any]:
    directories = [usage._asdict() for usage in broker.directories]
    return {**broker._asdict(), "state": broker.state, "directories": directories}


def _print(found: ClusterStatus, goal: Goal | None) -> None:
    health = found.health
    print_heading(f"cluster {found.cluster_id}")
    print_table(
        BROKER_COLUMNS,
        [broker_row(broker) for broker in found.brokers],
    )
    machines = machines_of(found.brokers)
    if machines:
        print_table(
            ("MACHINE", "RACK", "BROKERS", "STATE", "LEADERS", "REPLICAS", "LOGS"),
            [_machine_row(at) for at in machines],
        )
    print(f"quorum      {_quorum_text(found.quorum)}")
    counts = (
        f"{len(health.offline)} offline",
        f"{len(health.under_min_isr)} under min ISR",
        f"{len(health.at_min_isr)} at min ISR",
        f"{len(health.under_replicated)} under-replicated",
        f"{len(health.not_preferred)} not led by the preferred replica",
    )
    topics = "1 topic" if health.topics == 1 else f"{health.topics} topics"
    print(f"partitions  {health.partitions} in {topics}: {', '.join(counts)}")
    if skew := skew_of(found.brokers):
        print(f"balance     {_skew_text(skew, goal)}")
    if not found.problems:
        print("nothing needs attention")
    for problem in found.problems:
        print(f"{problem.severity.upper():7}  {problem.text}")
        print(f"         next: {problem.next_step}")


def broker_row(broker: BrokerStatus) -> tuple[object, ...]:
    logs = sum(usage.log_bytes for usage in broker.directories)
    return (
        broker.node_id,
        broker.address,
        broker.rack,
        broker.state,
        broker.leaders,
        broker.replicas,
        size_text(logs) if broker.directories else None,
        ", ".join(_free_text(usage.usable_bytes, usage.total_bytes) for usage in broker.directories) or None,
    )


def _machine_row(machine: MachineStatus) -> tuple[object, ...]:
    state = f"{machine.fenced} fenced" if machine.fenced else "up"
    ids = ", ".join(map(str, machine.broker_ids))
    return machine.host, machine.rack, ids, state, machine.leaders, machine.replicas, size_text(machine.log_bytes)


def _free_text(usable: int | None, total: int | None) -> str:
    if usable is None or not total:
        return "-"
    return f"{size_text(usable)} ({100 * usable // total}%)"


def _quorum_text(quorum: QuorumDescription) -> str:
    voters = ", ".join(str(voter.node_id) for voter in quorum.voters)
    return f"leader {quorum.leader_id} in epoch {quorum.leader_epoch}; voters {voters}"


def _skew_text(skew: Skew, goal: Goal | None) -> str:
    sizes = " to ".join(size_text(number) for number in (skew.log_bytes.least, skew.log_bytes.most))
    text = (
        f"a broker has {skew.leaders.least} to {skew.leaders.most} leaders, "
        f"{skew.replicas.least} to {skew.replicas.most} replicas, {sizes} of logs"
    )
    if goal is not None:
        text += f"; `sskafka topic rebalance --by {goal} --dry-run` shows how to balance this"
    return text
