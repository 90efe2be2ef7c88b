"""`sskafka broker drain | undrain`: move leaders away from a broker, and back.

A drained broker keeps its replicas in sync. It is the last choice in every list of replicas, and its directories are
cordoned: it leads only what no other in-sync replica can lead, and new topics are placed elsewhere. Both are stored in
the cluster, so that a restart of the broker changes nothing.
"""

import asyncio
from typing import Annotated

import typer

from sskafka.cli.broker.describe import no_such_broker
from sskafka.cli.completion import BrokerArgument
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.failures import CommandError
from sskafka.cli.moves import carry_out, elect, print_plan
from sskafka.cli.options import DryRunOption, FormatOption
from sskafka.cli.output import Format, talk
from sskafka.client.balance.layout import Layout
from sskafka.client.balance.leaders import plan_drain, plan_leaders, undrainable
from sskafka.client.balance.moving import set_cordoned
from sskafka.client.balance.reading import read_layout
from sskafka.client.cluster import Cluster
from sskafka.model.ids import TopicPartition

NOT_DRAINED = 3
_POLL_S = 0.1
TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=0, metavar="SECONDS", help="How long to wait for the leaders to move.")
]


def drain(
    broker_id: BrokerArgument,
    dry_run: DryRunOption = False,
    timeout: TimeoutOption = 60.0,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Move all leaders away from a broker and keep them away until `undrain`; exit code 3 if some must stay."""

    async def work() -> list[TopicPartition]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            layout = await live_layout(cluster, broker_id)
            print_plan(plan_drain(layout, broker_id), None, output)
            if dry_run:
                return []
            await set_cordoned(cluster, broker_id, True)
            return await _drain(cluster, layout, broker_id, timeout)

    left = run(work())
    if dry_run:
        talk("dry run: nothing was changed")
        return
    if left:
        named = ", ".join(map(str, left[:3]))
        talk(f"broker {broker_id} still leads {len(left)} partitions that no other in-sync replica can lead: {named}")
        talk(f"`sskafka broker decommission {broker_id}` moves replicas; or add replicas: `sskafka cluster reassign`")
        raise typer.Exit(NOT_DRAINED)
    talk(f"broker {broker_id} is drained; `sskafka broker undrain {broker_id}` gives it leaders again")


async def live_layout(cluster: Cluster, broker_id: int) -> Layout:
    layout = await read_layout(cluster)
    if broker_id not in layout.brokers:
        raise no_such_broker(broker_id, list(layout.brokers))
    if not layout.brokers[broker_id].is_live:
        raise CommandError(
            f"broker {broker_id} is down: it leads nothing", f"start it, or `sskafka broker decommission {broker_id}`"
        )
    return layout


async def _drain(cluster: Cluster, layout: Layout, broker_id: int, timeout_s: float) -> list[TopicPartition]:
    """Move the leaders; return the partitions that must stay. New partitions may have appeared meanwhile."""
    deadline_ms = cluster.deadline_ms(int(timeout_s * 1000))
    while True:
        await carry_out(cluster, plan_drain(layout, broker_id), None)
        led = [one.partition for one in layout.partitions if one.leader == broker_id]
        await elect(sorted(set(led) - set(undrainable(layout, broker_id))), cluster)
        layout = await read_layout(cluster)
        led = [one.partition for one in layout.partitions if one.leader == broker_id]
        stuck = undrainable(layout, broker_id)
        if set(led) <= set(stuck):
            return stuck
        if cluster.clock.monotonic_ms() >= deadline_ms:
            raise CommandError(
                f"broker {broker_id} still leads {len(led)} partitions after {timeout_s:g} s",
                "`sskafka cluster status` shows what is wrong; run the command again to continue",
            )
        await asyncio.sleep(_POLL_S)


def undrain(
    broker_id: BrokerArgument,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Allow a drained broker to lead again, and give it its share of the leaders."""

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            layout = await live_layout(cluster, broker_id)
            site = layout.brokers[broker_id]._replace(is_cordoned=False)
            opened = Layout({**layout.brokers, broker_id: site}, layout.partitions)
            moves = plan_leaders(opened)
            print_plan(moves, None, output)
            if not dry_run:
                await set_cordoned(cluster, broker_id, False)
                await carry_out(cluster, moves, None)

    run(work())
    talk("dry run: nothing was changed" if dry_run else f"broker {broker_id} leads again")
