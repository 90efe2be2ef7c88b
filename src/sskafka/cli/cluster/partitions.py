"""`sskafka cluster reassign | reassignments | elect-leaders | unregister`: the replicas and leaders of partitions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from sskafka.cli.cluster.plan_file import plan_text, read_plan
from sskafka.cli.confirm import confirm
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
    run_on_cluster,
)
from sskafka.cli.failures import CommandError, report_each
from sskafka.cli.moves import ThrottleOption, carry_out, print_plan, throttle_of
from sskafka.cli.options import DryRunOption, FormatOption, YesOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.patterns import topics_named
from sskafka.cli.usage import UsageError
from sskafka.cli.watching import WatchOption, watch_cluster
from sskafka.client.balance.layout import Move, PlanError
from sskafka.client.balance.reading import read_layout
from sskafka.client.balance.replicas import Goal, plan_onto
from sskafka.client.partition_moves import (
    Reassignment,
    alter_reassignments,
    elect_leaders,
    list_reassignments,
    unregister_broker,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

_PARTITIONS = "`sskafka topic list` shows the topics, `sskafka topic describe NAME -p` the partitions of one"


def reassign(
    moves: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC:PARTITION=BROKER,...", help="Replicas, the preferred leader first.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "--reassignment-json-file", help="A plan in the format of kafka-reassign-partitions."),
    ] = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Print a balanced plan in that format, and change nothing.")
    ] = False,
    topics: Annotated[
        list[str] | None, typer.Option("--topic", help="With --generate: topic or pattern. Repeatable.")
    ] = None,
    broker_list: Annotated[
        str | None, typer.Option("--broker-list", metavar="ID,...", help="With --generate: only these brokers.")
    ] = None,
    throttle: ThrottleOption = None,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Move partitions to other brokers; `TOPIC:PARTITION=` without brokers cancels a reassignment.

    Moves on the command line are only started. A plan in a file is carried out with progress."""
    if sum([bool(moves), file is not None, generate]) != 1:
        raise UsageError("give moves, --file or --generate")
    client = client_properties(properties)
    if generate:
        print(run(_generated(bootstrap, client, topics, broker_list)))
    elif file is not None:
        run(_carry_out_file(bootstrap, client, file, throttle_of(throttle), dry_run=dry_run, output=output))
    else:
        wanted = dict(_parse_move(move) for move in moves or ())

        async def work() -> dict[TopicPartition, KafkaError | None]:
            async with connected(bootstrap, client) as cluster:
                return await alter_reassignments(cluster, wanted)

        if dry_run:
            raise UsageError("--dry-run is for --file: moves on the command line are what they say")
        tell_outcomes(run(work()), "is being moved; `sskafka cluster reassignments` shows the progress")


async def _generated(bootstrap: str, client: dict[str, str], topics: list[str] | None, broker_list: str | None) -> str:
    """Return a plan that balances the topics over the brokers, as JSON."""
    async with connected(bootstrap, client) as cluster:
        layout = await read_layout(cluster)
        if topics:
            layout = layout.only(await topics_named(cluster, topics, internal=True))
        node_ids = _broker_ids(broker_list, list(layout.brokers)) if broker_list else layout.open_ids
        try:
            planned = layout.after(plan_onto(layout, node_ids, Goal.REPLICAS))
        except PlanError as error:
            raise CommandError(f"there is no such plan: {error}", "name more brokers") from error
        return plan_text({one.partition: one.replicas for one in planned.partitions})


async def _carry_out_file(
    bootstrap: str, client: dict[str, str], file: Path, throttle: int | None, *, dry_run: bool, output: Format
) -> None:
    wanted = read_plan(file)
    async with connected(bootstrap, client) as cluster:
        placed = {one.partition: one for one in (await read_layout(cluster)).partitions}
        for partition in wanted:
            await cluster.partition(partition)  # a misspelled topic gets the nearest name
        moves = [
            Move(
                partition, placed[partition].replicas, replicas, placed[partition].leader, placed[partition].size_bytes
            )
            for partition, replicas in wanted.items()
            if placed[partition].replicas != replicas
        ]
        print_plan(moves, throttle, output)
        if moves and not dry_run:
            await carry_out(cluster, moves, throttle)
    talk("dry run: nothing was changed" if dry_run else "the plan is carried out")


def _broker_ids(text: str, known: list[int]) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() for word in words):
        raise UsageError(f"--broker-list {text!r} is not a list of node ids, such as 1,2,3")
    unknown = {int(word) for word in words} - set(known)
    if unknown:
        raise CommandError(
            f"there is no broker {min(unknown)}", f"the brokers are {', '.join(map(str, sorted(known)))}"
        )
    return [int(word) for word in words]


def reassignments(
    watch: WatchOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the ongoing reassignments."""

    def show(found: Mapping[TopicPartition, Reassignment]) -> None:
        moves = sorted(found.items())
        if output.is_data:
            print_data(output, [{"topic": at.topic, "partition": at.partition, **move._asdict()} for at, move in moves])
        else:
            rows = [(at.topic, at.partition, *move) for at, move in moves]
            columns = ("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING")
            print_table(columns, rows, if_empty="no partition is being reassigned")

    watch_cluster(bootstrap, properties, watch, list_reassignments, show)


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

    outcomes = run_on_cluster(bootstrap, properties, lambda cluster: elect_leaders(cluster, chosen, unclean=unclean))
    not_needed = {at for at, error in outcomes.items() if error and error.code == ErrorCode.ELECTION_NOT_NEEDED}
    tell_outcomes({at: error for at, error in outcomes.items() if at not in not_needed}, "has a new leader")
    if len(not_needed) == len(outcomes):
        talk("every partition has its preferred leader")


def unregister(
    broker_id: Annotated[int, typer.Argument(metavar="BROKER")],
    yes: YesOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Unregister a broker that will not come back."""

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            if any(broker.node_id == broker_id for broker in await cluster.brokers()):
                raise CommandError(f"broker {broker_id} is alive", "stop the broker before unregistering it")
            confirm(f"removes the registration of broker {broker_id}", yes=yes)
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
    is_unknown = all(error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for error in failed.values())
    report_each(failed, _PARTITIONS if is_unknown else "")
    if failed:
        raise typer.Exit(1)
