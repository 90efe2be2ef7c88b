"""`sskafka group`: members, lag, rebalances and offsets of groups."""

from typing import Annotated

import typer

from sskafka.cli.completion import GroupArgument, GroupsArgument, complete_topic
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
from sskafka.cli.failures import CommandError
from sskafka.cli.group.text import event_json, group_json, print_group, print_timeline, reader_json
from sskafka.cli.options import DryRunOption, FormatOption, YesOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.patterns import groups_named, is_pattern, matching
from sskafka.cli.usage import UsageError
from sskafka.cli.watching import WatchOption, watch_cluster
from sskafka.client.cluster import Cluster
from sskafka.client.group_lag import PartitionLag, lag_of
from sskafka.client.group_reset import (
    NothingCommittedError,
    ResetPlan,
    check_has_no_members,
    named_partitions,
    plan_reset,
)
from sskafka.client.groups import (
    GroupDescription,
    commit_offsets,
    committed_offsets,
    delete_group,
    describe_group,
    fetched_positions,
    group_timeline,
    list_groups,
)
from sskafka.client.offset_range import OffsetRange, parse_offset_range
from sskafka.model.ids import TopicPartition
from sskafka.runtime.clock import SystemClock
from sskafka.wire.messages.describe_group_timeline import TimelineEvent
from sskafka.wire.messages.describe_readers import ReaderPosition

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

DescribedGroup = tuple[GroupDescription, list[PartitionLag], list[TimelineEvent]]


@app.command("list")
def list_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Group, glob or regular expression; all groups if not given."),
    ] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List groups, all or those that match a pattern."""

    every = {group.group_id: group for group in run_on_cluster(bootstrap, properties, list_groups)}
    found = [every[name] for name in matching(names or (), every)]
    if output.is_data:
        print_data(output, [group._asdict() for group in found])
    else:
        print_table(
            ("GROUP", "KIND", "STATE", "PROTOCOL", "COORDINATOR"),
            [
                (group.group_id, group.kind, group.state, group.protocol_type or None, group.coordinator)
                for group in found
            ],
            if_empty=f"none of {len(every)} groups matches" if every else "there are no groups",
        )


@app.command()
def describe(
    groups: GroupsArgument,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Also show the group's events and their reasons.")
    ] = False,
    watch: WatchOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show members, offsets and lag (in records, and in seconds: the age of the first unread record)."""
    is_one = len(groups) == 1 and not is_pattern(groups[0])

    async def ask_one(cluster: Cluster, group: str) -> DescribedGroup:
        described = await describe_group(cluster, group)
        owned = {partition for member in described.members for partition in member.partitions}
        lags = await lag_of(cluster, await committed_offsets(cluster, group), owned)
        return described, lags, await group_timeline(cluster, group) if timeline else []

    async def ask(cluster: Cluster) -> list[DescribedGroup]:
        return [await ask_one(cluster, group) for group in await groups_named(cluster, groups)]

    def show(found: list[DescribedGroup]) -> None:
        if output.is_data:
            shown = [group_json(one, lags, events if timeline else None) for one, lags, events in found]
            print_data(output, shown[0] if is_one else shown)
            return
        for number, (described, lags, events) in enumerate(found):
            if number:
                print()
            print_group(described, lags)
            if timeline:
                print()
                print_timeline(events)

    watch_cluster(bootstrap, properties, watch, ask, show)


@app.command("timeline")
def timeline_command(
    group: GroupArgument,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show who joined, left or timed out, why, and how long rebalances took, since the coordinator loaded the group."""

    events = run_on_cluster(bootstrap, properties, lambda cluster: group_timeline(cluster, group))
    if output.is_data:
        print_data(output, [event_json(event) for event in events])
    else:
        print_timeline(events)


@app.command()
def readers(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", help="All topics if not given.", autocompletion=complete_topic),
    ] = None,
    watch: WatchOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show how far clients have fetched, whether or not they commit (Spark does not). Fetched is not processed."""

    async def ask(cluster: Cluster) -> list[ReaderPosition]:
        for topic in topics or ():
            await cluster.topic(topic)  # a misspelled name would have no readers
        return await fetched_positions(cluster, topics)

    def show(found: list[ReaderPosition]) -> None:
        if output.is_data:
            print_data(output, [reader_json(reader) for reader in found])
        else:
            print_table(
                ("CLIENT-ID", "TOPIC", "PARTITION", "FETCHED", "LOG-END", "FETCH-LAG", "SECONDS-AGO"),
                [tuple(reader_json(reader).values()) for reader in found],
                if_empty="no client has fetched records recently",
            )

    watch_cluster(bootstrap, properties, watch, ask, show)


@app.command()
def delete(
    groups: GroupsArgument,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    execute: Annotated[bool, typer.Option("--execute", hidden=True)] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Delete groups without members, and their offsets."""

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            chosen = await groups_named(cluster, groups)
            for group in chosen:
                await describe_group(cluster, group)
                await check_has_no_members(cluster, group)
            if not dry_run:
                confirm(f"deletes the committed offsets of {', '.join(chosen)}", yes=yes or execute)
            for group in chosen:
                if not dry_run:
                    await delete_group(cluster, group)
                talk(f"{group}: {'would be deleted' if dry_run else 'deleted'}")

    run(work())


@app.command("reset-offsets")
def reset_offsets(
    group: GroupArgument,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", help="TOPIC or TOPIC:0,1; all committed partitions if not given."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="start, end, N, +N after the start, -N before the end, or @TIME.")
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="Number of records to move forward; negative: back.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Reset the offsets; otherwise only show the plan.")
    ] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Reset the offsets of a group without members. A dry run unless --execute is given."""

    target = _target(to, shift_by)

    async def work() -> ResetPlan:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            chosen = None if topics is None else await _named(cluster, topics)
            try:
                plan = await plan_reset(cluster, group, chosen, target, shift_by or 0)
            except NothingCommittedError as error:
                hint = "use --topic to name the partitions" if chosen is None else "use --to in place of --shift-by"
                raise CommandError(str(error), hint) from error
            if execute:
                await commit_offsets(cluster, group, {partition: new for partition, (_, new) in plan.items()})
            return plan

    plan = run(work())
    rows = [(topic, index, before, after) for (topic, index), (before, after) in sorted(plan.items())]
    if output.is_data:
        print_data(output, [dict(zip(("topic", "partition", "before", "after"), row, strict=True)) for row in rows])
    else:
        print_table(("TOPIC", "PARTITION", "BEFORE", "AFTER"), rows)
    if not execute:
        talk("nothing was changed; add --execute to reset the offsets")


def _target(to: str | None, shift_by: int | None) -> OffsetRange | None:
    if (to is None) == (shift_by is None):
        raise UsageError("give either --to or --shift-by")
    if to is None:
        return None
    try:
        target = parse_offset_range(to, SystemClock().now_ms())
    except ValueError as error:
        raise UsageError(f"--to: {error}") from error
    if target.stop is not None:
        raise UsageError(f"--to: {to!r} is a range; a group continues from one offset")
    return target


async def _named(cluster: Cluster, topics: list[str]) -> list[TopicPartition]:
    try:
        return await named_partitions(cluster, topics)
    except ValueError as error:
        raise UsageError(f"--topic: {error}") from error
