"""`sskafka metadata`: cluster metadata as the paths of ZooKeeper's shell, and the KRaft quorum."""

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

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
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_table
from sskafka.cli.watching import WatchOption, watch_cluster
from sskafka.client.described_image import describe
from sskafka.client.quorum import QuorumDescription, QuorumMember, describe_quorum
from sskafka.metadata.zookeeper_view import NoNodeError, ZooKeeperView

app = typer.Typer(
    help="Show cluster metadata as ZooKeeper paths, and the metadata quorum.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="For example /brokers/ids/1 or /controller.")]
_INDENT = "  "

T = TypeVar("T")


def quorum(
    watch: WatchOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the leader of the metadata quorum, and the progress of voters and observers."""

    def show(found: QuorumDescription) -> None:
        if output.is_data:
            print_data(output, _as_json(found))
        else:
            _print(found)

    watch_cluster(bootstrap, properties, watch, describe_quorum, show)


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


def ls(
    path: PathArgument = "/",
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the children of a path."""
    names = _at(path, _view(path, bootstrap, properties).ls)
    if output.is_data:
        print_data(output, names)
    else:
        print("".join(f"{name}\n" for name in names), end="")


def get(
    path: PathArgument,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the data of a path; `null` for a path that has only children."""
    data = _at(path, _view(path, bootstrap, properties).get)
    if output.is_data:
        print_data(output, _value(data))
    else:
        print("null" if data is None else data)


def tree(
    path: PathArgument = "/",
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print everything below a path."""
    nodes = _at(path, lambda top: list(_view(top, bootstrap, properties).walk(top)))
    if output.is_data:
        print_data(output, {at: _value(data) for at, data in nodes})
        return
    depth = nodes[0][0].rstrip("/").count("/")
    for at, data in nodes:
        shown = at if at == nodes[0][0] else at.rpartition("/")[2]
        indent = _INDENT * (at.rstrip("/").count("/") - depth)
        print(f"{indent}{shown}" if data is None else f"{indent}{shown}  {data}")


def _view(path: str, bootstrap: str, properties: list[str] | None) -> ZooKeeperView:
    with_configs = path.strip("/").split("/")[0] in {"", "config"}

    async def work() -> ZooKeeperView:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            found = await describe(cluster, with_configs=lambda _: with_configs)
        return ZooKeeperView(
            found.image,
            cluster_id=found.cluster_id,
            controller_id=found.controller_id,
            controller_epoch=found.controller_epoch,
        )

    return run(work())


def _at(path: str, look: Callable[[str], T]) -> T:
    try:
        return look(path)
    except NoNodeError as error:
        raise CommandError(str(error), "`sskafka metadata tree` shows every path") from error


def _value(data: str | None) -> object:
    """Parse the data, which is JSON. The controller's epoch is a bare number, which is JSON too."""
    return None if data is None else json.loads(data)


app.command()(ls)
app.command()(get)
app.command()(tree)
app.command()(quorum)
