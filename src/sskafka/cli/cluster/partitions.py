"""`sskafka cluster reassign | reassignments | elect-leaders | unregister`: the replicas and leaders of partitions."""

from collections.abc import Mapping
from typing import Annotated

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.failures import CommandError, report_each
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_json, print_table, talk
from sskafka.client.partition_moves import (
    Reassignment,
    alter_reassignments,
    elect_leaders,
    list_reassignments,
    unregister_broker,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition


def reassign(
    moves: Annotated[
        list[str], typer.Argument(metavar="TOPIC:PARTITION=BROKER,...", help="Replicas, the preferred leader first.")
    ],
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Move partitions to other brokers; `TOPIC:PARTITION=` without brokers cancels a reassignment."""
    wanted = dict(_parse_move(move) for move in moves)

    async def work() -> dict[TopicPartition, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await alter_reassignments(cluster, wanted)

    tell_outcomes(run(work()), "is being moved; `sskafka cluster reassignments` shows the progress")


def reassignments(
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """List the ongoing reassignments."""

    async def work() -> dict[TopicPartition, Reassignment]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await list_reassignments(cluster)

    found = sorted(run(work()).items())
    if output is Format.JSON:
        print_json([{"topic": at.topic, "partition": at.partition, **move._asdict()} for at, move in found])
    else:
        rows = [(at.topic, at.partition, *move) for at, move in found]
        print_table(("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"), rows)


def elect(
    partitions: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC:PARTITION", help="All partitions if not given.")
    ] = None,
    unclean: Annotated[
        bool, typer.Option("--unclean", help="Elect any live replica if no in-sync replica is left. Loses records.")
    ] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Elect the preferred leaders."""
    chosen = [_parse_partition(text) for text in partitions] if partitions else None

    async def work() -> dict[TopicPartition, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await elect_leaders(cluster, chosen, unclean=unclean)

    outcomes = run(work())
    not_needed = {at for at, error in outcomes.items() if error and error.code == ErrorCode.ELECTION_NOT_NEEDED}
    tell_outcomes({at: error for at, error in outcomes.items() if at not in not_needed}, "has a new leader")
    if len(not_needed) == len(outcomes):
        talk("every partition has its preferred leader")


def unregister(
    broker_id: Annotated[int, typer.Argument(metavar="BROKER")],
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Unregister a broker that will not come back."""

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            if any(broker.node_id == broker_id for broker in await cluster.brokers()):
                raise CommandError(f"broker {broker_id} is alive", "stop the broker before unregistering it")
            await unregister_broker(cluster, broker_id)

    run(work())
    talk(f"broker {broker_id} is unregistered")


def _parse_move(text: str) -> tuple[TopicPartition, list[int] | None]:
    partition, equals, brokers = text.partition("=")
    ids = [item.strip() for item in brokers.split(",") if item.strip()]
    if not equals or not all(item.isdecimal() for item in ids):
        raise typer.BadParameter(f"{text!r} is not TOPIC:PARTITION=BROKER,...", param_hint="TOPIC:PARTITION=BROKER,...")
    return _parse_partition(partition), [int(item) for item in ids] or None


def _parse_partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition(":")
    if not topic or not number.isdecimal():
        raise typer.BadParameter(f"{text!r} is not TOPIC:PARTITION", param_hint="TOPIC:PARTITION")
    return TopicPartition(topic, int(number))


def tell_outcomes(outcomes: Mapping[TopicPartition, KafkaError | None], done: str) -> None:
    """Print a line for each partition, and exit with 1 if one failed."""
    failed: dict[str, KafkaError] = {}
    for (topic, partition), error in sorted(outcomes.items()):
        if error is None:
            talk(f"{topic}:{partition} {done}")
        else:
            failed[f"{topic}:{partition}"] = error
    report_each(failed)
    if failed:
        raise typer.Exit(1)
