"""docker-compose.yaml and Dockerfile as a container engine reads them: what runs, in which environment, on which ports.

`SCHEMA` is the part of the Compose specification that the file uses; what is not in it would be a mistake, or is to be
added here. Docker itself is not needed to read either file.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPOSE_FILE = ROOT / "docker-compose.yaml"
DOCKERFILE = ROOT / "Dockerfile"

LOOPBACK = "127.0.0.1:"
PORTS = r"^127\.0\.0\.1:\d+:\d+$"
"""The lab's API lets every caller vote: it is published to this machine alone."""
_SERVICE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["build"],
    "properties": {
        "build": {"type": "string"},
        "image": {"type": "string"},
        "command": {"type": "array", "items": {"type": "string"}},
        "hostname": {"type": "string", "pattern": "^[a-z0-9-]+$"},
        "init": {"type": "boolean"},
        "restart": {"enum": ["no", "always", "on-failure", "unless-stopped"]},
        "stop_grace_period": {"type": "string", "pattern": r"^(\d+(us|ms|s|m|h))+$"},
        "ports": {"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": PORTS}},
        "volumes": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "string", "pattern": "^[a-z0-9-]+:/[a-z]+$"},
        },
        "environment": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {"^[A-Z][A-Z0-9_]*$": {"type": ["string", "number", "null"]}},
        },
    },
}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["services"],
    "patternProperties": {"^x-": {}},
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$"},
        "services": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {"^[a-zA-Z0-9._-]+$": _SERVICE},
        },
        "volumes": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {"^[a-zA-Z0-9._-]+$": {"type": "null"}},
        },
    },
}


class Image(NamedTuple):
    """What the last stage of the Dockerfile says."""

    environment: dict[str, str]
    command: list[str]
    healthcheck: list[str]
    user: str
    volumes: list[str]


class Service(NamedTuple):
    name: str
    host: str
    command: list[str]
    environment: dict[str, str]
    host_port: int
    container_port: int
    volumes: dict[str, str]


def read_compose() -> Any:
    return yaml.safe_load(COMPOSE_FILE.read_text())


def services() -> list[Service]:
    """With the image's environment under their own."""
    image = read_image()
    return [_service(name, fields, image) for name, fields in read_compose()["services"].items()]


def _service(name: str, fields: dict[str, Any], image: Image) -> Service:
    (ports,) = fields["ports"]
    host_port, container_port = map(int, ports.removeprefix(LOOPBACK).split(":"))
    volumes = dict(volume.split(":") for volume in fields["volumes"])
    environment = image.environment | fields["environment"]
    command = fields.get("command", image.command)
    return Service(name, fields["hostname"], command, environment, host_port, container_port, volumes)


def read_image() -> Image:
    lines = re.sub(r"\\\n\s*", " ", DOCKERFILE.read_text()).splitlines()
    last_stage = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    said = [line.split(" ", 1) for line in lines[last_stage:] if line and not line.startswith("#")]
    values = {word: text for word, text in said if word not in {"RUN", "COPY", "ENV"}}
    variables = [pair.split("=", 1) for word, text in said if word == "ENV" for pair in shlex.split(text)]
    return Image(
        environment={name: text for name, text in variables if name != "PATH"},
        command=json.loads(values["CMD"]),
        healthcheck=json.loads(values["HEALTHCHECK"].split(" CMD ", 1)[1]),
        user=values["USER"],
        volumes=json.loads(values["VOLUME"]),
    )
