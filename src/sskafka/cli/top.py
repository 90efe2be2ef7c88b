"""`sskafka top`: live rates by topic, group and client, highest first."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_heading, print_item, print_table, uses_color
from sskafka.cli.sizes import size_text
from sskafka.cli.watching import CLEAR_SCREEN
from sskafka.client.rates import ClusterRates, ReaderRate, rates_between, read_rate_sample

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def top(
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, metavar="SECONDS", help="Time between two samples.")
    ] = 2.0,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", "-n", min=1, help="Stop after this number of screens.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Topics, groups and clients to show, at most.")] = 10,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show what is written to topics and what groups and clients read, in records and bytes a second."""

    async def work() -> None:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            before = await read_rate_sample(cluster)
            shown = 0
            while iterations is None or shown < iterations:
                await asyncio.sleep(interval)
                after = await read_rate_sample(cluster)
                _show(rates_between(before, after), rows, output)
                before = after
                shown += 1

    run(work())


def _show(rates: ClusterRates, rows: int, output: Format) -> None:
    if output.is_data:
        print_item(output, _as_json(rates))
    else:
        _print(rates, rows)
    sys.stdout.flush()


def _as_json(rates: ClusterRates) -> dict[str, Any]:
    return {name: [rate._asdict() for rate in found] for name, found in rates._asdict().items()}


def _print(rates: ClusterRates, rows: int) -> None:
    if uses_color():
        print(CLEAR_SCREEN, end="")
    records = sum(rate.records_per_s for rate in rates.topics)
    size = sum(rate.bytes_per_s for rate in rates.topics)
    print_heading(f"{datetime.now().astimezone():%H:%M:%S}  {records:.0f} records/s, {size_text(size)}/s written")
    busy = [rate for rate in rates.topics if rate.records_per_s or rate.bytes_per_s]
    print_table(
        ("TOPIC", "RECORDS/S", "BYTES/S"),
        [(rate.topic, f"{rate.records_per_s:.1f}", size_text(rate.bytes_per_s)) for rate in busy[:rows]],
    )
    _print_readers("GROUP", rates.groups[:rows])
    _print_readers("CLIENT", rates.clients[:rows])
    print()


def _print_readers(kind: str, rates: Sequence[ReaderRate]) -> None:
    if rates:
        print()
        print_table((kind, "RECORDS/S", "LAG"), [(rate.name, f"{rate.records_per_s:.1f}", rate.lag) for rate in rates])
