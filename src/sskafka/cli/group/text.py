"""Groups as text and as JSON: members, lag, events, and reader positions."""

from datetime import UTC, datetime
from typing import Any

from sskafka.cli.output import print_heading, print_table
from sskafka.client.group_lag import PartitionLag
from sskafka.client.groups import GroupDescription
from sskafka.wire.messages.describe_group_timeline import TimelineEvent
from sskafka.wire.messages.describe_readers import ReaderPosition

LAG_COLUMNS = (
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
)


def print_group(described: GroupDescription, lags: list[PartitionLag]) -> None:
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
    print_table(LAG_COLUMNS, [_lag_row(described, item) for item in lags])


def _lag_row(described: GroupDescription, item: PartitionLag) -> tuple[object, ...]:
    owner = described.owner_of(item.partition)
    who = (owner.member_id, owner.client_id, owner.host) if owner is not None else (None, None, None)
    return (*item.partition, item.committed, item.log_start, item.log_end, item.lag, _seconds(item.lag_ms), *who)


def _seconds(ms: int | None) -> str | None:
    return None if ms is None else f"{ms / 1000:.1f}"


def print_timeline(events: list[TimelineEvent]) -> None:
    print_heading("Events of the group, newest last")
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


def group_json(
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
        "partitions": [_lag_json(item) for item in lags],
    }
    if events is not None:
        shown["timeline"] = [event_json(event) for event in events]
    return shown


def _lag_json(item: PartitionLag) -> dict[str, Any]:
    return {
        "topic": item.partition.topic,
        "partition": item.partition.partition,
        "committed": item.committed,
        "log_start": item.log_start,
        "log_end": item.log_end,
        "lag": item.lag,
        "lag_ms": item.lag_ms,
    }


def event_json(event: TimelineEvent) -> dict[str, Any]:
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


def reader_json(reader: ReaderPosition) -> dict[str, Any]:
    return {
        "client_id": reader.client_id,
        "topic": reader.topic,
        "partition": reader.partition,
        "fetched": reader.fetch_offset,
        "log_end": reader.log_end_offset,
        "fetch_lag": max(0, reader.log_end_offset - reader.fetch_offset),
        "seconds_ago": round(reader.age_ms / 1000, 1),
    }
