"""Moves of partitions: print a plan, carry it out with progress, and say how to stop it."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.progress_bar import ProgressBar
from sskafka.cli.sizes import duration_text, parse_size, size_text
from sskafka.client.balance.layout import Move, planned_seconds
from sskafka.client.balance.moving import (
    clear_throttle_of,
    elect_preferred,
    read_progress,
    start_moves,
)
from sskafka.client.cluster import Cluster
from sskafka.model.ids import TopicPartition

POLL_S = 0.5
ELECTION_ATTEMPTS = 20
ROWS_MAX = 30

ThrottleOption = Annotated[
    str | None,
    typer.Option(
        "--throttle",
        metavar="BYTES/S",
        help="Limit of what each broker sends and receives, such as 50MB. None: no limit.",
    ),
]


def throttle_of(text: str | None) -> int | None:
    return None if text is None else parse_size(text, "--throttle")


def print_plan(moves: Sequence[Move], throttle: int | None, output: Format) -> None:
    """Print the moves, and sum up what they cost."""
    copied = sum(move.copied_bytes for move in moves)
    if output.is_data:
        print_data(output, plan_json(moves, throttle))
    elif moves:
        rows = [
            (*move.partition, move.before, move.after, size_text(move.copied_bytes) if move.added else "-")
            for move in moves[:ROWS_MAX]
        ]
        print_table(("TOPIC", "PARTITION", "REPLICAS", "NEW REPLICAS", "TO COPY"), rows)
        if len(moves) > ROWS_MAX:
            talk(f"and {len(moves) - ROWS_MAX} more; --output json shows all")
    copies = sum(len(move.added) for move in moves)
    drops = sum(len(move.before) > len(move.after) for move in moves)
    reorders = sum(not move.added for move in moves) - drops
    parts = [f"copy {_count(copies, 'replica')} ({size_text(copied)})"] if copies else []
    parts += [f"drop {_count(drops, 'replica')}"] if drops else []
    parts += [f"change the order of replicas of {_count(reorders, 'partition')}"] if reorders else []
    if throttle is not None and copied:
        parts.append(f"at least {duration_text(planned_seconds(moves, throttle))} with this throttle")
    talk(f"plan: {'; '.join(parts) or 'nothing to do'}")


def plan_json(moves: Sequence[Move], throttle: int | None) -> dict[str, Any]:
    return {
        "moves": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "replicas": list(move.before),
                "new_replicas": list(move.after),
                "copied_bytes": move.copied_bytes,
            }
            for move in moves
        ],
        "copied_bytes": sum(move.copied_bytes for move in moves),
        "planned_seconds": planned_seconds(moves, throttle) if throttle else None,
    }


async def carry_out(cluster: Cluster, moves: Sequence[Move], throttle: int | None) -> None:
    """Start the moves, show their progress until all are done, then remove the throttle and elect the leaders."""
    began = cluster.clock.monotonic_ms()
    await start_moves(cluster, moves, throttle)
    copies = [move for move in moves if move.added]
    if copies:
        await _watch(cluster, copies)
        if throttle is not None:
            await clear_throttle_of(cluster, copies)
        seconds = (cluster.clock.monotonic_ms() - began) / 1000
        copied = sum(move.copied_bytes for move in copies)
        talk(f"copied {size_text(copied)} in {seconds:.1f} s ({_count(len(copies), 'partition')})")
    await elect([move.partition for move in moves if move.after[0] != move.leader], cluster)


async def _watch(cluster: Cluster, moves: Sequence[Move]) -> None:
    progress = ProgressBar()
    try:
        while True:
            found = await read_progress(cluster, moves)
            progress.show(found.copied_bytes, found.planned_bytes, f"{found.moved} of {found.partitions} partitions")
            if found.is_done:
                return
            await asyncio.sleep(POLL_S)
    except asyncio.CancelledError:
        progress.close()
        talk("the moves go on without this command: `sskafka cluster reassignments` shows them,")
        talk("`sskafka topic rebalance --cancel` cancels them and removes throttles")
        raise
    finally:
        progress.close()


async def elect(partitions: Sequence[TopicPartition], cluster: Cluster) -> None:
    """Elect the preferred leaders; brokers may need a moment to know the new order of replicas."""
    failed = dict(await elect_preferred(cluster, partitions))
    for _ in range(ELECTION_ATTEMPTS):
        if not failed:
            return
        await asyncio.sleep(POLL_S / 5)
        failed = await elect_preferred(cluster, list(failed))
    for partition, error in sorted(failed.items()):
        talk(f"warning: {partition} is not led by its preferred replica: {error}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
