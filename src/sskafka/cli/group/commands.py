"""`sskafka group`: members, lag, rebalances and offsets of groups."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.failures import CommandError
from sskafka.cli.group.text import event_json, group_json, print_group, print_timeline, reader_json
from sskafka.cli.offset_range import OffsetRange, parse_offset_range, resolve
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_json, print_table, talk
from sskafka.cli.usage import UsageError
from sskafka.client.cluster import Cluster
from sskafka.client.group_lag import PartitionLag, lag_of
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
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.runtime.clock import SystemClock
from sskafka.wire.messages.describe_group_timeline import TimelineEvent
from sskafka.wire.messages.describe_readers import ReaderPosition

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]
Plan = dict[TopicPartition, tuple[int | None, int]]
"""The committed offset and the new one."""


@app.command("list")
def list_command(
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """List the groups of the cluster."""

    async def work() -> list[Any]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await list_groups(cluster)

    found = run(work())
    if output is Format.JSON:
        print_json([group._asdict() for group in found])
    else:
        print_table(
            ("GROUP", "KIND", "STATE", "PROTOCOL", "COORDINATOR"),
            [
                (group.group_id, group.kind, group.state, group.protocol_type or None, group.coordinator)
                for group in found
            ],
        )


@app.command()
def describe(
    group: GroupArgument,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Also show the group's events and their reasons.")
    ] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show members, offsets and lag (in records, and in seconds: the age of the first unread record)."""

    async def work() -> tuple[GroupDescription, list[PartitionLag], list[TimelineEvent]]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            described = await describe_group(cluster, group)
            owned = {partition for member in described.members for partition in member.partitions}
            lags = await lag_of(cluster, await committed_offsets(cluster, group), owned)
            return described, lags, await group_timeline(cluster, group) if timeline else []

    described, lags, events = run(work())
    if output is Format.JSON:
        print_json(group_json(described, lags, events if timeline else None))
        return
    print_group(described, lags)
    if timeline:
        print()
        print_timeline(events)


@app.command("timeline")
def timeline_command(
    group: GroupArgument,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show who joined, left or timed out, why, and how long rebalances took, since the coordinator loaded the group."""

    async def work() -> list[TimelineEvent]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await group_timeline(cluster, group)

    events = run(work())
    if output is Format.JSON:
        print_json([event_json(event) for event in events])
    else:
        print_timeline(events)


@app.command()
def readers(
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC...", help="All topics if not given.")] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show how far clients have fetched, whether or not they commit (Spark does not). Fetched is not processed."""

    async def work() -> list[ReaderPosition]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            for topic in topics or ():
                await cluster.topic(topic)  # a misspelled name would have no readers
            return await fetched_positions(cluster, topics)

    found = run(work())
    if output is Format.JSON:
        print_json([reader_json(reader) for reader in found])
    else:
        print_table(
            ("CLIENT-ID", "TOPIC", "PARTITION", "FETCHED", "LOG-END", "FETCH-LAG", "SECONDS-AGO"),
            [tuple(reader_json(reader).values()) for reader in found],
        )


@app.command()
def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Groups without members.")],
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Delete the groups; otherwise only show what would be deleted.")
    ] = False,
) -> None:
    """Delete groups and their offsets. A dry run unless --execute is given."""

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            for group in groups:
                await describe_group(cluster, group)
                await check_has_no_members(cluster, group)
                if execute:
                    await delete_group(cluster, group)
                talk(f"{group}: {'deleted' if execute else 'would be deleted; use --execute'}")

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
    output: FormatOption = Format.TEXT,
) -> None:
    """Reset the offsets of a group without members. A dry run unless --execute is given."""

    target = _target(to, shift_by)

    async def work() -> Plan:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            plan = await plan_reset(cluster, group, topics, target, shift_by or 0)
            if execute:
                await commit_offsets(cluster, group, {partition: new for partition, (_, new) in plan.items()})
            return plan

    plan = run(work())
    rows = [(topic, index, before, after) for (topic, index), (before, after) in sorted(plan.items())]
    if output is Format.JSON:
        print_json([dict(zip(("topic", "partition", "before", "after"), row, strict=True)) for row in rows])
    else:
        print_table(("TOPIC", "PARTITION", "BEFORE", "AFTER"), rows)
    if not execute:
        talk("nothing was changed; use --execute")


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


async def plan_reset(
    cluster: Cluster, group: str, topics: Iterable[str] | None, target: OffsetRange | None, shift_by: int
) -> Plan:
    """Plan a move to `target`, or by `shift_by` records from the committed offsets. Always within the log."""
    await check_has_no_members(cluster, group)
    committed = {partition: found.offset for partition, found in (await committed_offsets(cluster, group)).items()}
    partitions = sorted(committed) if topics is None else await _named(cluster, topics)
    if not partitions:
        raise CommandError(f"group {group!r} has committed nothing", "use --topic to name the partitions")
    if target is not None:
        spans = await resolve(cluster, target, partitions, 0)
        return {partition: (committed.get(partition), span.start) for partition, span in spans.items()}
    known = {partition: committed[partition] for partition in partitions if partition in committed}
    if not known:
        raise CommandError(f"group {group!r} has committed nothing there", "use --to in place of --shift-by")
    starts = await list_offsets(cluster, dict.fromkeys(known, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(known, LATEST))
    return {
        partition: (offset, min(max(offset + shift_by, starts[partition].offset), ends[partition].offset))
        for partition, offset in known.items()
    }


async def check_has_no_members(cluster: Cluster, group: str) -> None:
    """Raise CommandError if the group has members. A group that does not exist yet has none."""
    try:
        described = await describe_group(cluster, group)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if described.members:
        raise CommandError(
            f"group {group!r} has {len(described.members)} members", f"stop them; `sskafka group describe {group}`"
        )


async def _named(cluster: Cluster, topics: Iterable[str]) -> list[TopicPartition]:
    """Parse TOPIC, or TOPIC:0,1 for some of its partitions."""
    found: list[TopicPartition] = []
    for text in topics:
        name, colon, numbers = text.partition(":")
        view = await cluster.topic(name)
        chosen = _numbers(text, numbers) if colon else sorted(view.partitions)
        found += [TopicPartition(name, index) for index in chosen]
    return found


def _numbers(text: str, numbers: str) -> list[int]:
    words = numbers.split(",")
    if not all(word.isdecimal() for word in words):
        raise UsageError(f"--topic {text!r} is not TOPIC or TOPIC:0,1")
    return [int(word) for word in words]
