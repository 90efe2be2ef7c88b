"""Which command lines are read without the libraries of the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

from sskafka.cli.main import StartOptions, plain_start


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("start", StartOptions(None, [], "info", [])),
        ("start a.properties", StartOptions(Path("a.properties"), [], "info", [])),
        (
            "start --set a=1 f --set b=2 --log-level debug --inherit PLAINTEXT=5",
            StartOptions(Path("f"), ["a=1", "b=2"], "debug", ["PLAINTEXT=5"]),
        ),
    ],
)
def test_plain_forms_are_read(words: str, expected: StartOptions) -> None:
    assert plain_start(words.split()) == expected


@pytest.mark.parametrize(
    "words",
    [
        "",
        "topic list",
        "start --help",
        "start --set",
        "start --set=a=1",
        "start --unknown x",
        "start a b",
        "start --set --x",
    ],
)
def test_everything_else_is_left_to_typer(words: str) -> None:
    assert plain_start(words.split()) is None


def test_a_plain_start_imports_neither_typer_nor_pydantic() -> None:
    script = (
        "import sys, sskafka.cli.start; sys.exit(bool({'typer', 'click', 'pydantic', 'rich'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_wrong_pair_is_wrong_usage() -> None:
    command = [sys.executable, "-m", "sskafka", "start", "--set", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--set 'nonsense' is not key=value" in done.stderr
