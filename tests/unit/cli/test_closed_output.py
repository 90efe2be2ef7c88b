"""Commands whose output nobody reads any more, and broken pipes that have nothing to do with the output."""

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from sskafka.cli import commands
from sskafka.cli.closed_output import is_closed
from sskafka.cli.commands import LazyCommand, app
from sskafka.cli.pipeline.progress import ProgressLines
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.progress import QueryProgress


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    """The end of a pipe that is written to, without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def command_that_raises(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    own = typer.Typer()

    @own.command()
    def fail() -> None:
        raise error

    monkeypatch.setitem(sys.modules, "failing_command", SimpleNamespace(app=own))  # type: ignore[misc]
    monkeypatch.setitem(commands.COMMANDS, "fail", LazyCommand("failing_command", ""))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BrokenPipeError(32, "Broken pipe"), "Broken pipe"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (EOFError(), "EOFError"),
    ],
)
def test_a_socket_that_breaks_is_an_error_and_not_a_silent_end(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_that_raises(error, monkeypatch)
    result = CliRunner().invoke(app, ["fail"])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"error: a connection was lost: {reason}",
        "  try: run the command again; --debug shows where",
    ]


def test_a_command_whose_reader_has_gone_ends_silently(closed_pipe: int) -> None:
    command = [sys.executable, "-m", "sskafka", "storage", "random-uuid"]
    ended = subprocess.run(command, stdout=closed_pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_error_that_nobody_reads_has_its_exit_code(closed_pipe: int) -> None:
    command = [sys.executable, "-m", "sskafka", "topic", "list", "-b", "127.0.0.1:9"]
    assert subprocess.run(command, stdout=closed_pipe, stderr=closed_pipe, check=False).returncode == 1


def test_which_streams_are_closed(closed_pipe: int) -> None:
    reading, writing = os.pipe()
    with open(closed_pipe, "w", closefd=False) as closed, open(writing, "w") as open_one, open(reading):
        assert is_closed(closed)
        assert not is_closed(open_one)


def test_a_run_ends_with_a_reason_when_nobody_reads_its_messages(
    closed_pipe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(closed_pipe, "wb", buffering=0, closefd=False) as raw:
        stream = SimpleNamespace(write=lambda text: raw.write(text.encode()), flush=lambda: None)
        monkeypatch.setattr(sys, "stderr", stream)
        lines = ProgressLines()
        lines.tell("threads and signal handlers call this")
        with pytest.raises(PipelineRunError, match="has closed its end of the pipe") as failure:
            lines.show([QueryProgress("topic", 4, 100, 90)])
    assert "2> FILE" in failure.value.hint
