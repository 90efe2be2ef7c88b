"""`sskafka cluster`: clusters as a whole."""

import typer

from sskafka.cli.cluster_up import up

app = typer.Typer(
    help="Start brokers as one cluster on this machine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def cluster() -> None:
    """Start brokers as one cluster on this machine."""


app.command()(up)
