"""Client properties from a file."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from sskafka.cli.command_config import with_command_config
from sskafka.cli.commands import COMMANDS, LazyGroup
from sskafka.cli.connecting import DEFAULT_BOOTSTRAP, BootstrapOption, PropertiesOption, client_properties


def invoke(*arguments: str) -> dict[str, Any]:
    """Run a command with the connection options; return what it was given."""
    seen: dict[str, Any] = {}
    commands = typer.Typer()

    @commands.command()
    def probe(bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP, properties: PropertiesOption = None) -> None:
        seen.update(bootstrap=bootstrap, **client_properties(properties))

    with_command_config(get_command(commands)).main(list(arguments), standalone_mode=False)
    return seen


def test_properties_of_the_command_line_override_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=kafka.example:9093\nclient.id=from-file\nrequest.timeout.ms=1000\n")
    seen = invoke("-X", "client.id=mine", "--command-config", str(file))
    assert seen == {"bootstrap": "kafka.example:9093", "client.id": "mine", "request.timeout.ms": "1000"}
    assert invoke("-b", "other:1", "--command-config", str(file))["bootstrap"] == "other:1"
    assert invoke() == {"bootstrap": DEFAULT_BOOTSTRAP}


def test_what_other_clients_have_is_ignored_with_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("queue.buffering.max.messages=secret-number\nclient.id=me\n")
    assert invoke("--command-config", str(file)) == {"bootstrap": DEFAULT_BOOTSTRAP, "client.id": "me"}
    told = capsys.readouterr().err
    assert "queue.buffering.max.messages" in told
    assert "secret-number" not in told


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="No such file"):
        invoke("--command-config", str(tmp_path / "none"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_connects_takes_properties_and_a_file(name: str) -> None:
    for command in single_commands(LazyGroup(commands={}).get_command(None, name)):
        options = [option.opts for option in command.params]
        connects = any("--bootstrap-server" in names for names in options)
        assert options.count(["-X"]) == options.count(["--command-config"]) == connects, f"{name} {command.name}"


def single_commands(command: Any) -> list[Any]:
    """Return the command, or all commands of the group."""
    parts = getattr(command, "commands", {}).values()
    return [one for part in parts for one in single_commands(part)] if parts else [command]
