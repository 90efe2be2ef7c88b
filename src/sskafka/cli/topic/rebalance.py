"""`sskafka topic rebalance`: spread leaders, replicas or bytes evenly over the brokers."""

from collections.abc import Sequence
from typing import Annotated

import typer

from sskafka.cli.completion import TopicsArgument
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.moves import ThrottleOption, carry_out, print_plan, throttle_of
from sskafka.cli.options import DryRunOption, FormatOption
from sskafka.cli.output import Format, talk
from sskafka.cli.patterns import topics_named
from sskafka.client.balance.moving import cancel_moves
from sskafka.client.balance.reading import read_layout
from sskafka.client.balance.replicas import Goal, plan_rebalance
from sskafka.client.cluster import Cluster


def rebalance(
    names: TopicsArgument = None,
    goal: Annotated[
        Goal, typer.Option("--by", help="What to balance. Leaders are always balanced: that copies nothing.")
    ] = Goal.REPLICAS,
    throttle: ThrottleOption = None,
    dry_run: DryRunOption = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel all ongoing moves of the topics, and remove their throttles.")
    ] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Balance topics (all if none is named) over the brokers that are up and not drained.

    Replication factors and racks are kept, and as little as possible is copied."""
    rate = throttle_of(throttle)

    async def work() -> str:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            chosen = await topics_named(cluster, names, internal=True) if names else None
            if cancel:
                return await _cancel(cluster, chosen, dry_run=dry_run)
            layout = await read_layout(cluster)
            moves = plan_rebalance(layout.only(chosen) if chosen is not None else layout, goal)
            print_plan(moves, rate, output)
            if moves and not dry_run:
                await carry_out(cluster, moves, rate)
            return "dry run: nothing was changed" if dry_run else "the topics are balanced"

    talk(run(work()))


async def _cancel(cluster: Cluster, topics: Sequence[str] | None, *, dry_run: bool) -> str:
    if dry_run:
        return "dry run: `sskafka cluster reassignments` shows what would be cancelled"
    cancelled = await cancel_moves(cluster, topics)
    if not cancelled:
        return "no partitions are being moved"
    return f"cancelled moves: {len(cancelled)}; these partitions keep the replicas that they had before"
