"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from sskafka.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--format", help="How to print.")]
FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="PROPERTIES", help="server.properties; without it a single node in ./sskafka-data."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Setting, stronger than file and environment.")
]
