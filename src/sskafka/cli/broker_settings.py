"""The settings of a broker, from a properties file, the environment and --set."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from sskafka.cli.failures import CommandError
from sskafka.cli.usage import key_values
from sskafka.model.properties import parse_properties
from sskafka.model.setting_sources import IMPLIED_BY_LAB_BROKERS, LAB_BROKERS
from sskafka.model.settings import Settings

DEFAULT_DIRECTORY = Path("sskafka-data")
AUTHORITY_FILE = DEFAULT_DIRECTORY / "certs" / "ca.pem"
"""Exists if the single node was secured."""

# Without a file: a single node that only this machine can reach.
SINGLE_NODE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://localhost:9092",
    "http.listener": "localhost:8080",
    "adr.listener": "localhost:9180",
    "log.dirs": str(DEFAULT_DIRECTORY / "data"),
}


def load_settings(file: Path | None, overrides: list[str] | None) -> Settings:
    """Return the settings. Raise SettingError for an invalid value."""
    stated = _without_file(os.environ) if file is None else _read(file)
    return Settings.resolve(stated, os.environ, key_values(overrides, "--set"), host_name=socket.gethostname())


def _without_file(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a single node. If BROKERS lists the nodes of a cluster, the addresses come from there."""
    if LAB_BROKERS not in environment:
        return SINGLE_NODE
    return {key: text for key, text in SINGLE_NODE.items() if key not in {*IMPLIED_BY_LAB_BROKERS, "adr.listener"}}


def _read(file: Path) -> dict[str, str]:
    try:
        return parse_properties(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(f"file not found: {file}", "`sskafka start` without a file runs a single node") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not valid UTF-8 text: {error}") from error


def home_of(file: Path | None) -> Path:
    """Return the directory of a broker's pid file: the directory of its properties file."""
    return DEFAULT_DIRECTORY if file is None else file.resolve().parent
