"""`sskafka metadata quorum`: the Raft quorum of the cluster's metadata."""

from typing import Any

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_json, print_table
from sskafka.client.quorum import QuorumDescription, QuorumMember, describe_quorum


def quorum(
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the leader of the metadata quorum, and the progress of voters and observers."""

    async def work() -> QuorumDescription:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await describe_quorum(cluster)

    found = run(work())
    if output is Format.JSON:
        print_json(_as_json(found))
    else:
        _print(found)


def _as_json(found: QuorumDescription) -> dict[str, Any]:
    return {
        "leader_id": found.leader_id,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "voters": [_member_json(found, member) for member in found.voters],
        "observers": [_member_json(found, member) for member in found.observers],
    }


def _member_json(found: QuorumDescription, member: QuorumMember) -> dict[str, int]:
    return {
        "node_id": member.node_id,
        "log_end_offset": member.log_end_offset,
        "lag": found.lag(member),
        "last_fetch_timestamp": member.last_fetch_timestamp,
        "last_caught_up_timestamp": member.last_caught_up_timestamp,
    }


def _print(found: QuorumDescription) -> None:
    for label, value in (
        ("LEADER", found.leader_id),
        ("EPOCH", found.leader_epoch),
        ("HIGH-WATERMARK", found.high_watermark),
    ):
        print(f"{label:<16}{value}")
    print()
    rows = [_row(found, member, "voter") for member in found.voters]
    rows += [_row(found, member, "observer") for member in found.observers]
    print_table(("NODE", "ROLE", "LOG-END-OFFSET", "LAG"), rows)


def _row(found: QuorumDescription, member: QuorumMember, role: str) -> tuple[object, ...]:
    shown = "leader" if member.node_id == found.leader_id else role
    return (member.node_id, shown, member.log_end_offset, found.lag(member))
