"""`sskafka start` on the command line."""

from typing import Annotated

import typer

from sskafka.cli.options import FileArgument, SetOption
from sskafka.cli.start import run_broker

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def start(
    file: FileArgument = None,
    overrides: SetOption = None,
    log_level: Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")] = "info",
    secure: Annotated[
        bool, typer.Option("--secure", help="TLS, SASL and ACLs for a single node, with a user `admin`.")
    ] = False,
    inherit: Annotated[list[str] | None, typer.Option("--inherit", metavar="LISTENER=FD", hidden=True)] = None,
) -> None:
    """Run one broker in the foreground."""
    raise typer.Exit(run_broker(file, overrides or [], log_level, inherit or [], secure=secure))
