"""`sskafka broker`: the brokers of a cluster, and how to take one away without losing anything."""

import typer

from sskafka.cli.broker.decommission import decommission
from sskafka.cli.broker.describe import describe, list_
from sskafka.cli.broker.drain import drain, undrain
from sskafka.cli.broker.safe_to_stop import safe_to_stop

app = typer.Typer(
    help="List and describe brokers; drain and decommission them; check whether one is safe to stop.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

app.command("list")(list_)
app.command()(describe)
app.command()(drain)
app.command()(undrain)
app.command()(decommission)
app.command("safe-to-stop")(safe_to_stop)
