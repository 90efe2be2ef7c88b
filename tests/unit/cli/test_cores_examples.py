"""deploy/cores: the examples start what they say, on the ports that they publish."""

import shlex
from pathlib import Path
from typing import Any

import yaml
from typer.main import get_command

from sskafka.cli.broker_settings import SINGLE_NODE
from sskafka.cli.host.members import plan_members
from sskafka.cli.start_command import app
from sskafka.model.settings import Settings
from sskafka.storage.disk import OsDisk

EXAMPLES = Path(__file__).resolve().parents[3] / "deploy" / "cores"


def options_of(words: list[str]) -> dict[str, Any]:
    """Return the options of a `sskafka start` command line."""
    assert Path(words[0]).name == "sskafka"
    assert words[1] == "start"
    return dict(get_command(app).make_context("start", words[2:]).params)


def test_compose_publishes_the_ports_of_all_brokers(tmp_path: Path) -> None:
    (service,) = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())["services"].values()
    count = int(options_of(service["command"])["brokers_per_host"])
    assert service["cpus"] == count
    machine = Settings.resolve(
        {**SINGLE_NODE, "log.dirs": str(tmp_path)}, service["environment"], host_name=service["hostname"]
    )
    used = [{listener.port for listener in member.listeners} for member in plan_members(machine, count, OsDisk())]
    published: set[int] = set()
    for text in service["ports"]:
        address, outside, inside = text.split(":")
        assert address == "127.0.0.1"
        assert outside == inside, "clients use the advertised ports"
        first, last = map(int, inside.split("-"))
        published |= set(range(first, last + 1))
    assert set().union(*used) == published


def test_the_unit_starts_one_broker_for_each_core() -> None:
    lines = (EXAMPLES / "sskafka.service").read_text().splitlines()
    (command,) = (line.partition("=")[2] for line in lines if line.startswith("ExecStart="))
    options = options_of(shlex.split(command))
    assert options["brokers_per_host"] == "auto"
    assert options["file"] == Path("/etc/sskafka/server.properties")
