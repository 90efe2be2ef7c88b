"""The options by which every client command finds its cluster, and the cluster they name."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

import typer

from sskafka.cli.pairs import key_values
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured, unknown_properties

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "localhost:9092"

BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        "--brokers",
        metavar="HOST:PORT,...",
        envvar="SSKAFKA_BOOTSTRAP",
        help="Where to connect.",
    ),
]
PropertiesOption = Annotated[
    list[str] | None, typer.Option("-X", metavar="KEY=VALUE", help="Client property, under Kafka's name. Repeatable.")
]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs one command's work; Ctrl+C cancels it."""
    return asyncio.run(work)


@asynccontextmanager
async def connected(bootstrap: str, properties: dict[str, str]) -> AsyncIterator[Cluster]:
    """A cluster that answered once: where nobody listens a command fails at once instead of trying for a minute."""
    async with Cluster(bootstrap, configured(ConnectionConfig, properties)) as cluster:
        await cluster.refresh()
        yield cluster


def client_properties(pairs: Sequence[str] | None) -> dict[str, str]:
    """What -X options say; an unknown key is wrong usage."""
    properties = key_values(pairs, "-X")
    for key, nearest in unknown_properties(properties).items():
        meant = f"; did you mean {nearest}?" if nearest else ""
        raise typer.BadParameter(f"there is no client property {key!r}{meant}", param_hint="-X")
    return properties
