"""The settings of the broker that a command is about: a properties file, the environment and --set."""

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from sskafka.cli.failures import CommandError
from sskafka.cli.pairs import key_values
from sskafka.model.properties import parse_properties
from sskafka.model.settings import Settings

DEFAULT_DIRECTORY = Path("sskafka-data")

# Without a file: one node, for this machine alone.
SINGLE_NODE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": str(DEFAULT_DIRECTORY / "data"),
}

FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="PROPERTIES", help="server.properties; without it a single node in ./sskafka-data."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Setting, stronger than file and environment.")
]


def load_settings(file: Path | None, overrides: list[str] | None) -> Settings:
    """Raises SettingError for a value that cannot be used."""
    stated = SINGLE_NODE if file is None else _read(file)
    return Settings.resolve(stated, os.environ, key_values(overrides, "--set"), host_name=socket.gethostname())


def _read(file: Path) -> dict[str, str]:
    try:
        return parse_properties(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(f"there is no file {file}", "`sskafka start` without a file runs a single node") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not a text in UTF-8: {error}") from error


def home_of(file: Path | None) -> Path:
    """Where a broker's pid file stands: beside its properties file."""
    return DEFAULT_DIRECTORY if file is None else file.resolve().parent
