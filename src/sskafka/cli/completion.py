"""Shell completion of topic and group names, asked from the cluster that the command line names.

A shell waits for the answer while somebody types, so the cluster has little time, and no error is shown.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

ANSWER_TIMEOUT_S = 2.0


def complete_topic(ctx: typer.Context, incomplete: str) -> list[str]:
    from sskafka.client.admin import Admin  # noqa: PLC0415  not for --help
    from sskafka.client.cluster import Cluster  # noqa: PLC0415

    async def names(cluster: Cluster) -> list[str]:
        return [topic.name for topic in await Admin(cluster).list_topics(internal=incomplete.startswith("_"))]

    return _asked(ctx, incomplete, names)


def complete_group(ctx: typer.Context, incomplete: str) -> list[str]:
    from sskafka.client.cluster import Cluster  # noqa: PLC0415  not for --help
    from sskafka.client.groups import list_groups  # noqa: PLC0415

    async def names(cluster: Cluster) -> list[str]:
        return [group.group_id for group in await list_groups(cluster)]

    return _asked(ctx, incomplete, names)


def _asked(ctx: typer.Context, incomplete: str, names: Callable[..., Awaitable[list[str]]]) -> list[str]:
    from sskafka.cli.connecting import DEFAULT_BOOTSTRAP, client_properties, connected  # noqa: PLC0415

    bootstrap = ctx.params.get("bootstrap") or os.environ.get("SSKAFKA_BOOTSTRAP") or DEFAULT_BOOTSTRAP

    async def work() -> list[str]:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            async with connected(bootstrap, client_properties(ctx.params.get("properties"))) as cluster:
                return await names(cluster)

    try:
        return [name for name in asyncio.run(work()) if name.startswith(incomplete)]
    except Exception:  # the shell must not show a traceback in the middle of a line
        return []


TopicsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        show_default=False,
        autocompletion=complete_topic,
        help="Topic, glob such as 'orders-*', or regular expression that starts with ^.",
    ),
]
TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topic)]
GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="Name of the group.", autocompletion=complete_group)
]
GroupsArgument = Annotated[
    list[str], typer.Argument(metavar="GROUP", help="Groups without members.", autocompletion=complete_group)
]
