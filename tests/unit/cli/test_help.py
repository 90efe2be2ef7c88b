"""The help of every command can be read without knowing Python, and no summary is cut off."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from sskafka.cli.commands import COMMANDS, app

TYPES = re.compile(r"<(?:list|str|int|float|path|Path)\b")


def helps(name: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a command and of the commands below it, with their help."""
    root: Any = get_command(app)
    context = root.make_context("sskafka", [], resilient_parsing=True)
    waiting = [(name, root.get_command(context, name), context)]
    while waiting:
        path, command, parent = waiting.pop()
        context = command.make_context(path, [], parent=parent, resilient_parsing=True)
        yield path, command.get_help(context)
        waiting += [(f"{path} {one}", inner, context) for one, inner in getattr(command, "commands", {}).items()]


@pytest.mark.parametrize("name", COMMANDS)
def test_values_have_names_instead_of_types(name: str) -> None:
    for path, text in helps(name):
        assert TYPES.findall(text) == [], path
        usage = text.partition("\n\n")[0]
        assert "...]..." not in usage.replace(",...]...", ""), path
        assert "[[" not in usage, path


@pytest.mark.parametrize("name", COMMANDS)
def test_summaries_are_whole(name: str) -> None:
    for path, text in helps(name):
        _, _, summaries = text.partition("\nCommands:\n")
        assert "..." not in summaries, path


def test_a_value_is_named_by_its_option() -> None:
    texts = dict(helps("topic")) | dict(helps("user"))
    assert "-g, --group GROUP " in texts["topic consume"]
    assert "-n, --num, --max-messages N " in texts["topic consume"]
    assert "--mechanism <scram-sha-256|scram-sha-512>" in texts["user add"]
    assert "\n  TOPIC  Target topic" in texts["topic produce"]
