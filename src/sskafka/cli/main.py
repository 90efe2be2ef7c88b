"""The entry point of the `sskafka` command.

A broker should start within half a second, and the command line libraries would take a fifth of that. A plain `sskafka
start` is therefore parsed here. Every other command line, also an invalid one, is left to commands.py.
"""

import gc
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple


class StartOptions(NamedTuple):
    file: Path | None
    overrides: list[str]
    log_level: str
    inherit: list[str]
    member: str | None = None


def run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # records may hold characters that the terminal cannot show
            stream.reconfigure(errors="replace")
    plain = plain_start(sys.argv[1:])
    if plain is not None:
        sys.exit(_start(plain))
    from sskafka.cli.commands import app  # noqa: PLC0415

    app(prog_name="sskafka")


def plain_start(arguments: Sequence[str]) -> StartOptions | None:
    """Return the options of a command line that is only `start`, a file and options with values, otherwise None."""
    if arguments[:1] != ["start"]:
        return None
    files: list[str] = []
    options: dict[str, list[str]] = {"--set": [], "--log-level": [], "--inherit": [], "--member": []}
    words = iter(arguments[1:])
    for word in words:
        value = next(words, "-") if word in options else word
        if value.startswith("-"):
            return None
        options.get(word, files).append(value)
    if len(files) > 1:
        return None
    return StartOptions(
        Path(files[0]) if files else None,
        options["--set"],
        (options["--log-level"] or ["info"])[-1],
        options["--inherit"],
        options["--member"][-1] if options["--member"] else None,
    )


def _start(options: StartOptions) -> int:
    gc.disable()  # imported modules never become garbage
    from sskafka.cli.failures import report  # noqa: PLC0415
    from sskafka.cli.start import run_broker  # noqa: PLC0415
    from sskafka.cli.usage import UsageError  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    try:
        return run_broker(*options)
    except UsageError as error:
        report(error)
        return 2
    except Exception as error:
        if not report(error):
            raise
        return 1
