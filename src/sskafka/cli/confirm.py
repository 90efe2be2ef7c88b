"""Ask for confirmation before data is deleted."""

import sys

import typer

from sskafka.cli.output import talk
from sskafka.cli.usage import UsageError


def confirm(what: str, *, yes: bool) -> None:
    """Return if the user agrees; `yes` is --yes. Without a terminal nobody can be asked, so --yes is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"this {what}; add --yes to confirm")
    print(f"This {what}. Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        talk("nothing was changed")
        raise typer.Exit(1)
