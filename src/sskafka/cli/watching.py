"""`--watch SECONDS`: show a screen again and again."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import typer

from sskafka.cli.connecting import run_on_cluster
from sskafka.cli.output import uses_color
from sskafka.client.cluster import Cluster

T = TypeVar("T")

WatchOption = Annotated[
    float | None,
    typer.Option("--watch", min=0.1, metavar="SECONDS", help="Repeat at this interval until Ctrl+C."),
]
CLEAR_SCREEN = "\x1b[2J\x1b[H"


def watch_cluster(
    bootstrap: str,
    properties: Sequence[str] | None,
    seconds: float | None,
    ask: Callable[[Cluster], Awaitable[T]],
    show: Callable[[T], None],
) -> T:
    """Ask the cluster and show the answer, once or repeatedly. Return the last answer."""
    return run_on_cluster(bootstrap, properties, lambda cluster: shown_again(seconds, lambda: ask(cluster), show))


async def shown_again(seconds: float | None, ask: Callable[[], Awaitable[T]], show: Callable[[T], None]) -> T:
    """Ask and show once; with `seconds`, repeat at that interval until the command is cancelled."""
    while True:
        found = await ask()
        if seconds is not None and uses_color():
            print(CLEAR_SCREEN, end="")
        show(found)
        sys.stdout.flush()
        if seconds is None:
            return found
        await asyncio.sleep(seconds)
