"""Partitions that need attention: under-replicated, unavailable, at or below `min.insync.replicas`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from sskafka.cli.connecting import connected
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.patterns import topics_named
from sskafka.cli.watching import shown_again
from sskafka.client.admin import Admin
from sskafka.client.cluster_status import MIN_INSYNC_REPLICAS, partition_health
from sskafka.client.configs import describe_topic_setting
from sskafka.client.metadata import NO_LEADER, PartitionView
from sskafka.model.ids import TopicPartition

UnderReplicatedOption = Annotated[
    bool,
    typer.Option(
        "--under-replicated", "--under-replicated-partitions", help="Only partitions with replicas that are behind."
    ),
]
UnavailableOption = Annotated[
    bool, typer.Option("--unavailable", "--unavailable-partitions", help="Only partitions without a leader.")
]
AtMinIsrOption = Annotated[
    bool,
    typer.Option("--at-min-isr", "--at-min-isr-partitions", help="Only those that cannot lose an in-sync replica."),
]
UnderMinIsrOption = Annotated[
    bool,
    typer.Option("--under-min-isr", "--under-min-isr-partitions", help="Only those that refuse acks=all."),
]
PARTITION_COLUMNS = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR")

_CONDITION_TEXT = {
    "offline": "without a leader",
    "under_min_isr": "under min ISR",
    "at_min_isr": "at min ISR",
    "under_replicated": "under-replicated",
}

Found = list[tuple[TopicPartition, PartitionView, list[str]]]


def partition_row(partition: PartitionView) -> tuple[object, ...]:
    leader = None if partition.leader == NO_LEADER else partition.leader
    return (partition.partition, leader, partition.leader_epoch, partition.replicas, partition.isr)


async def list_unhealthy(
    bootstrap: str,
    properties: dict[str, str],
    names: Sequence[str],
    regexes: Sequence[str],
    conditions: Sequence[str],
    watch: float | None,
    output: Format,
) -> None:
    """Print the partitions that meet one of the conditions, which are fields of `PartitionHealth`."""
    async with connected(bootstrap, properties) as cluster:
        chosen = await topics_named(cluster, names, regexes)

        async def ask() -> Found:
            topics = [
                one for one in await Admin(cluster).list_topics(internal=True) if not chosen or one.name in chosen
            ]
            min_isr = await describe_topic_setting(cluster, [one.name for one in topics], MIN_INSYNC_REPLICAS)
            health = partition_health(topics, {topic: int(text) for topic, text in min_isr.items()})
            reasons: dict[TopicPartition, list[str]] = {}
            for condition in conditions:
                for partition in getattr(health, condition):
                    reasons.setdefault(partition, []).append(condition)
            views = {one.name: one for one in topics}
            return [(one, views[one.topic].partitions[one.partition], reasons[one]) for one in sorted(reasons)]

        await shown_again(watch, ask, lambda found: _show(found, conditions, output))


def _show(found: Found, conditions: Sequence[str], output: Format) -> None:
    if output.is_data:
        print_data(
            output,
            [
                {
                    "topic": at.topic,
                    **{key: value for key, value in view._asdict().items() if key != "error_code"},
                    "conditions": reasons,
                }
                for at, view, reasons in found
            ],
        )
    elif found:
        rows = [
            (at.topic, *partition_row(view), ", ".join(_CONDITION_TEXT[reason] for reason in reasons))
            for at, view, reasons in found
        ]
        print_table(("TOPIC", *PARTITION_COLUMNS, "PROBLEM"), rows)
    else:
        talk(f"no partition is {' or '.join(_CONDITION_TEXT[condition] for condition in conditions)}")
