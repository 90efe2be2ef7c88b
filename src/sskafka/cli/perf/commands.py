"""`sskafka perf`: measure a cluster with the output format of Kafka's tools, or a grid of clusters."""

import typer

from sskafka.cli.perf.grid import grid
from sskafka.cli.perf.load import consume, produce

app = typer.Typer(
    help="Measure throughput and latency of a cluster, or of a grid of clusters.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command()(produce)
app.command()(consume)
app.command()(grid)
