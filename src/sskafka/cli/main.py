"""The entry of the `sskafka` command.

A broker has half a second to start, of which the libraries of the command line would take a fifth. So a plain
`sskafka start` is read here; every other command line, also a wrong one, is left to them (commands.py).
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


def run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # records hold any bytes; what the terminal cannot show must not stop us
            stream.reconfigure(errors="replace")
    plain = plain_start(sys.argv[1:])
    if plain is not None:
        sys.exit(_start(plain))
    from sskafka.cli.commands import app  # noqa: PLC0415

    app(prog_name="sskafka")


def plain_start(arguments: Sequence[str]) -> StartOptions | None:
    """What a command line asks for that is nothing but `start`, a file and options with their values."""
    if arguments[:1] != ["start"]:
        return None
    files: list[str] = []
    given: dict[str, list[str]] = {"--set": [], "--log-level": [], "--inherit": []}
    words = iter(arguments[1:])
    for word in words:
        value = next(words, "-") if word in given else word
        if value.startswith("-"):
            return None
        given.get(word, files).append(value)
    if len(files) > 1:
        return None
    return StartOptions(
        Path(files[0]) if files else None, given["--set"], (given["--log-level"] or ["info"])[-1], given["--inherit"]
    )


def _start(options: StartOptions) -> int:
    gc.disable()  # nothing that is imported is garbage, now or later
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
