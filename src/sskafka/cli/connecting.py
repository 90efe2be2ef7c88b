"""The connection options of client commands, and the cluster that they name."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

import typer

from sskafka.cli.command_config import pairs_of_file
from sskafka.cli.failures import CommandError, explain
from sskafka.cli.nearest import did_you_mean
from sskafka.cli.usage import UsageError, key_values
from sskafka.client.cluster import Cluster
from sskafka.client.config import CONFIG_CLASSES, ConnectionConfig, configured, unknown_properties
from sskafka.client.errors import ClientError, ConfigError, UnknownGroupError, UnknownPartitionError, UnknownTopicError
from sskafka.client.groups import list_groups
from sskafka.model.errors import KafkaError

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
        help="Addresses to connect to.",
    ),
]
PropertiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="KEY=VALUE",
        callback=pairs_of_file,
        help="Client property, under Kafka's or librdkafka's name. Repeatable.",
    ),
]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run one command's coroutine. Ctrl+C cancels it."""
    return asyncio.run(work)


def run_on_cluster(
    bootstrap: str, properties: Sequence[str] | None, action: Callable[[Cluster], Coroutine[Any, Any, T]]
) -> T:
    """Run a command that needs nothing but a cluster. `properties` are those of -X."""

    async def work() -> T:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return await action(cluster)

    return run(work())


@asynccontextmanager
async def connected(bootstrap: str, properties: dict[str, str]) -> AsyncIterator[Cluster]:
    """Yield a cluster that has answered once, so that a command fails at once if no broker listens."""
    try:
        cluster = Cluster(bootstrap, configured(ConnectionConfig, properties))
    except ConfigError as error:
        raise UsageError(str(error)) from error
    async with cluster:
        await cluster.refresh()
        try:
            yield cluster
        except UnknownPartitionError:
            raise  # its topic exists
        except UnknownTopicError as error:
            raise await _with_nearest(error, error.topic, lambda: _topic_names(cluster)) from error
        except UnknownGroupError as error:
            raise await _with_nearest(error, error.group, lambda: _group_names(cluster)) from error


async def _with_nearest(error: KafkaError, name: str, known: Callable[[], Awaitable[list[str]]]) -> Exception:
    """Return the error with the name that was probably meant, if there is one."""
    try:
        meant = did_you_mean(name, await known())
    except (ClientError, KafkaError):
        meant = ""
    explanation = explain(error)
    return CommandError(explanation.cause if explanation else str(error), meant) if meant else error


async def _topic_names(cluster: Cluster) -> list[str]:
    return list((await cluster.refresh(None)).topics)


async def _group_names(cluster: Cluster) -> list[str]:
    return [group.group_id for group in await list_groups(cluster)]


def client_properties(pairs: Sequence[str] | None) -> dict[str, str]:
    """Return the client properties given with -X. Raise a usage error for an unknown key or an invalid value."""
    properties = key_values(pairs, "-X")
    for key, nearest in unknown_properties(properties).items():
        meant = f"; did you mean {nearest}?" if nearest else ""
        raise typer.BadParameter(f"unknown client property {key!r}{meant}", param_hint="-X")
    try:
        for kind in CONFIG_CLASSES:
            configured(kind, properties)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="-X") from error
    return properties
