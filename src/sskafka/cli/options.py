"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from sskafka.cli.output import Format

FormatOption = Annotated[Format, typer.Option("--output", help="Output format.")]
FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="PROPERTIES", help="server.properties; if not given, a single node in ./sskafka-data."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Setting; overrides file and environment.")
]
BrokersPerHostOption = Annotated[
    str | None,
    typer.Option(
        "--brokers-per-host",
        metavar="auto|N",
        help="Number of broker processes on this machine, each a broker to clients; auto: one for each core.",
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", "-d", help="Only show what would be changed.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
