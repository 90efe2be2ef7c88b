"""Shell completion of topics, groups and brokers, asked from the cluster that the command line names, and of settings.

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


def complete_broker(ctx: typer.Context, incomplete: str) -> list[str]:
    from sskafka.client.cluster import Cluster  # noqa: PLC0415  not for --help

    async def ids(cluster: Cluster) -> list[str]:
        return [str(broker.node_id) for broker in await cluster.brokers()]

    return _asked(ctx, incomplete, ids)


def complete_setting(incomplete: str) -> list[str]:
    """Complete the name of a setting; which kind has it is known only after the option that follows."""
    from sskafka.model.group_configs import GROUP_SETTINGS  # noqa: PLC0415  not for --help
    from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS  # noqa: PLC0415

    known = {**TOPIC_SETTINGS, **GROUP_SETTINGS, **BROKER_SETTINGS}
    return sorted(name for name in known if name.startswith(incomplete))


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
    list[str],
    typer.Argument(
        metavar="GROUP",
        help="Group, glob such as 'billing-*', or regular expression that starts with ^.",
        autocompletion=complete_group,
    ),
]
BrokerArgument = Annotated[
    int, typer.Argument(metavar="BROKER", help="Node id of the broker.", autocompletion=complete_broker)
]
