"""`sskafka broker decommission`: move everything away from a broker, then remove its registration."""

import asyncio
from typing import Annotated

import typer

from sskafka.cli.broker.describe import no_such_broker
from sskafka.cli.completion import BrokerArgument
from sskafka.cli.confirm import confirm
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.failures import CommandError
from sskafka.cli.moves import ThrottleOption, carry_out, print_plan, throttle_of
from sskafka.cli.options import DryRunOption, FormatOption, YesOption
from sskafka.cli.output import Format, talk
from sskafka.client.balance.layout import Layout, PlanError
from sskafka.client.balance.moving import set_cordoned
from sskafka.client.balance.reading import read_layout
from sskafka.client.balance.replicas import plan_decommission
from sskafka.client.cluster import Cluster
from sskafka.client.partition_moves import unregister_broker
from sskafka.client.quorum import describe_quorum

_POLL_S = 0.2


def decommission(
    broker_id: BrokerArgument,
    dry_run: DryRunOption = False,
    throttle: ThrottleOption = None,
    yes: YesOption = False,
    allow_fewer: Annotated[
        bool,
        typer.Option(
            "--allow-fewer-replicas", help="Drop the replica of a partition that every other broker has already."
        ),
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            min=0,
            metavar="SECONDS",
            help="How long to wait for the broker to be stopped. 0: only move its replicas.",
        ),
    ] = 3600.0,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Move all replicas away from a broker, wait until it is stopped, and unregister it.

    The broker gets no new replicas from the beginning. If the broker is down already, its replicas are
    moved and it is unregistered. The command can be interrupted and repeated at any time."""
    rate = throttle_of(throttle)

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            layout = await read_layout(cluster)
            if broker_id not in layout.brokers:
                raise no_such_broker(broker_id, list(layout.brokers))
            await _evacuate(
                cluster, layout, broker_id, rate, dry_run=dry_run, yes=yes, allow_fewer=allow_fewer, output=output
            )
            if wait and not dry_run:
                await _unregister(cluster, broker_id, wait)

    run(work())
    if dry_run:
        talk("dry run: nothing was changed")
    elif wait:
        talk(f"broker {broker_id} is unregistered")
    else:
        talk(f"broker {broker_id} has no replicas; repeat the command after its stop to unregister it")


async def _evacuate(
    cluster: Cluster,
    layout: Layout,
    broker_id: int,
    throttle: int | None,
    *,
    dry_run: bool,
    yes: bool,
    allow_fewer: bool,
    output: Format,
) -> None:
    """Move replicas until the broker has none: topics may be created before the broker is cordoned."""
    try:
        moves = plan_decommission(layout, [broker_id], allow_fewer=allow_fewer)
        print_plan(moves, throttle, output)
        if dry_run:
            return
        confirm(f"removes broker {broker_id} from the cluster", yes=yes)
        if layout.brokers[broker_id].is_live:
            await set_cordoned(cluster, broker_id, True)
        while moves:
            await carry_out(cluster, moves, throttle)
            await asyncio.sleep(_POLL_S)  # brokers learn of dropped replicas a moment later
            moves = plan_decommission(await read_layout(cluster), [broker_id], allow_fewer=allow_fewer)
    except PlanError as error:
        raise CommandError(
            f"broker {broker_id} cannot leave: {error}",
            "start or add brokers, or drop such replicas with --allow-fewer-replicas",
        ) from error


async def _unregister(cluster: Cluster, broker_id: int, wait_s: float) -> None:
    """Wait until the broker is stopped, then remove its registration."""
    await _warn_if_voter(cluster, broker_id)
    deadline_ms = cluster.deadline_ms(int(wait_s * 1000))
    is_told = False
    while any(broker.node_id == broker_id for broker in await cluster.retrying(cluster.brokers)):
        if not is_told:
            talk(f"broker {broker_id} has no replicas; stop it now, and it will be unregistered")
            is_told = True
        if cluster.clock.monotonic_ms() >= deadline_ms:
            raise CommandError(
                f"broker {broker_id} has no replicas, but it is still running",
                f"stop it, then `sskafka broker decommission {broker_id}` unregisters it",
            )
        await asyncio.sleep(_POLL_S)
    await unregister_broker(cluster, broker_id)


async def _warn_if_voter(cluster: Cluster, broker_id: int) -> None:
    voters = [voter.node_id for voter in (await describe_quorum(cluster)).voters]
    if broker_id in voters:
        talk(
            f"warning: broker {broker_id} is one of {len(voters)} quorum voters and still counts for the majority; "
            "remove it from controller.quorum.voters of the other nodes with a rolling restart"
        )
