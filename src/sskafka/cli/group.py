"""`sskafka group`: who reads what and how far, why it rebalances, and moving a group to other offsets."""

from datetime import UTC, datetime
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
from sskafka.cli.group_lag import PartitionLag, lag_of
from sskafka.cli.group_reset import Plan, check_has_no_members, plan_reset
from sskafka.cli.offset_range import OffsetRange, parse_offset_range
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_heading, print_json, print_table, talk
from sskafka.cli.usage import UsageError
from sskafka.client.clock import SystemClock
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
from sskafka.wire.messages.describe_group_timeline import TimelineEvent
from sskafka.wire.messages.describe_readers import ReaderPosition

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]


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
        bool, typer.Option("--timeline", help="Also show what happened in the group, and why.")
    ] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show members, offsets and lag (in records, and in seconds: the age of the first record not read)."""

    async def work() -> tuple[GroupDescription, list[PartitionLag], list[TimelineEvent]]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            described = await describe_group(cluster, group)
            owned = {partition for member in described.members for partition in member.partitions}
            lags = await lag_of(cluster, await committed_offsets(cluster, group), owned)
            return described, lags, await group_timeline(cluster, group) if timeline else []

    described, lags, events = run(work())
    if output is Format.JSON:
        print_json(_as_json(described, lags, events if timeline else None))
        return
    _print_group(described, lags)
    if timeline:
        print()
        _print_timeline(events)


@app.command("timeline")
def timeline_command(
    group: GroupArgument,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show who joined, left or timed out, why, and how long rebalances took; since the coordinator has the group."""

    async def work() -> list[TimelineEvent]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await group_timeline(cluster, group)

    events = run(work())
    if output is Format.JSON:
        print_json([_event_json(event) for event in events])
    else:
        _print_timeline(events)


@app.command()
def readers(
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC...", help="All when not given.")] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show how far clients have fetched, whether or not they commit (Spark does not). Fetched is not processed."""

    async def work() -> list[ReaderPosition]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            for topic in topics or ():
                await cluster.topic(topic)  # a name that is misspelled has no readers
            return await fetched_positions(cluster, topics)

    found = run(work())
    if output is Format.JSON:
        print_json([_reader_json(reader) for reader in found])
    else:
        print_table(
            ("CLIENT-ID", "TOPIC", "PARTITION", "FETCHED", "LOG-END", "FETCH-LAG", "SECONDS-AGO"),
            [tuple(_reader_json(reader).values()) for reader in found],
        )


@app.command()
def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Groups without members.")],
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; otherwise only say what would be done.")] = False,
) -> None:
    """Delete groups and their offsets. A dry run unless --execute."""

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            for group in groups:
                await describe_group(cluster, group)
                await check_has_no_members(cluster, group)
                if execute:
                    await delete_group(cluster, group)
                talk(f"{group}: {'deleted' if execute else 'would be deleted; --execute does it'}")

    run(work())


@app.command("reset-offsets")
def reset_offsets(
    group: GroupArgument,
    topics: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="TOPIC or TOPIC:0,1; all that were committed if left out.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="start, end, N, +N after the start, -N before the end, or @TIME.")
    ] = None,
    shift_by: Annotated[int | None, typer.Option("--shift-by", help="Records forward, or back with a minus.")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; otherwise only show what would be done.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Move a group without members to other offsets. A dry run unless --execute."""

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
        talk("nothing was changed: --execute does it")


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
        raise UsageError(f"--to: {to!r} has an end; a group goes on from one place")
    return target


# -- printing


def _print_group(described: GroupDescription, lags: list[PartitionLag]) -> None:
    lag = sum(item.lag or 0 for item in lags)
    for label, value in (
        ("GROUP", described.group_id),
        ("KIND", described.kind),
        ("STATE", described.state),
        ("ASSIGNOR", described.assignor or "-"),
        ("COORDINATOR", described.coordinator),
        ("MEMBERS", len(described.members)),
        ("LAG", f"{lag} records, {max((item.lag_ms or 0 for item in lags), default=0) / 1000:.1f} s"),
    ):
        print(f"{label:<13}{value}")
    print()
    print_table(
        (
            "TOPIC",
            "PARTITION",
            "COMMITTED",
            "LOG-START",
            "LOG-END",
            "LAG",
            "LAG-SECONDS",
            "MEMBER",
            "CLIENT-ID",
            "HOST",
        ),
        [_lag_row(described, item) for item in lags],
    )


def _lag_row(described: GroupDescription, item: PartitionLag) -> tuple[object, ...]:
    owner = described.owner_of(item.partition)
    who = (owner.member_id, owner.client_id, owner.host) if owner is not None else (None, None, None)
    return (*item.partition, item.committed, item.log_start, item.log_end, item.lag, _seconds(item.lag_ms), *who)


def _seconds(ms: int | None) -> str | None:
    return None if ms is None else f"{ms / 1000:.1f}"


def _print_timeline(events: list[TimelineEvent]) -> None:
    print_heading("What happened in the group, newest last")
    print_table(
        ("TIME", "EVENT", "GENERATION", "MEMBERS", "TOOK", "WHO", "WHY"),
        [
            (
                _time(event.at_ms),
                event.kind,
                event.generation,
                event.member_count,
                None if event.duration_ms < 0 else f"{event.duration_ms} ms",
                event.client_id or event.member_id or None,
                event.reason or None,
            )
            for event in events
        ],
    )


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _as_json(
    described: GroupDescription, lags: list[PartitionLag], events: list[TimelineEvent] | None
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "group": described.group_id,
        "kind": described.kind,
        "state": described.state,
        "assignor": described.assignor,
        "coordinator": described.coordinator,
        "members": [
            {**member._asdict(), "partitions": [list(partition) for partition in member.partitions]}
            for member in described.members
        ],
        "partitions": [
            {
                "topic": item.partition.topic,
                "partition": item.partition.partition,
                "committed": item.committed,
                "log_start": item.log_start,
                "log_end": item.log_end,
                "lag": item.lag,
                "lag_ms": item.lag_ms,
            }
            for item in lags
        ],
    }
    if events is not None:
        shown["timeline"] = [_event_json(event) for event in events]
    return shown


def _event_json(event: TimelineEvent) -> dict[str, Any]:
    return {
        "time": _time(event.at_ms),
        "event": event.kind,
        "generation": event.generation,
        "members": event.member_count,
        "duration_ms": event.duration_ms if event.duration_ms >= 0 else None,
        "member_id": event.member_id,
        "instance_id": event.instance_id,
        "client_id": event.client_id,
        "host": event.client_host,
        "reason": event.reason,
    }


def _reader_json(reader: ReaderPosition) -> dict[str, Any]:
    return {
        "client_id": reader.client_id,
        "topic": reader.topic,
        "partition": reader.partition,
        "fetched": reader.fetch_offset,
        "log_end": reader.log_end_offset,
        "fetch_lag": max(0, reader.log_end_offset - reader.fetch_offset),
        "seconds_ago": round(reader.age_ms / 1000, 1),
    }
