"""`sskafka cluster`: clusters as a whole."""

import typer

from sskafka.cli.cluster.partitions import elect, reassign, reassignments, unregister
from sskafka.cli.cluster.restart import restart
from sskafka.cli.cluster.status import status
from sskafka.cli.cluster.up import up

app = typer.Typer(
    help="Start brokers as one cluster on this machine; show its health; move partitions and leadership.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

app.command()(up)
app.command()(status)
app.command()(restart)
app.command()(reassign)
app.command()(reassignments)
app.command("elect-leaders")(elect)
app.command()(unregister)
