"""A documentation page as a script: its marked blocks are files to write, commands to run, and what these print.

A comment in front of a block says what it is:

    <!-- settings -->              variables; every later command begins with these lines
    <!-- file: NAME -->            the content of a file
    <!-- run -->                   commands that must end with code 0
    <!-- serve until: TEXT -->     a server, which runs until the page is over and says TEXT when it is ready
    <!-- output -->                what the commands above print, alone or within more; `...` stands for any text

Blocks without a comment are prose. So the commands that people read are those that are tested.
"""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, Self

from waiting import wait_until

DOCS = Path(__file__).resolve().parents[2] / "docs"
RUN_TIMEOUT_S = 400
READY_WITHIN_S = 180
STOP_TIMEOUT_S = 60
_BLOCK = re.compile(r"^<!-- (?P<what>[^>]+?) -->\n+```\w*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    kind: str
    argument: str
    text: str


def blocks(page: str, section: str = "") -> Iterator[Block]:
    """The marked blocks of a page in docs/, or of one of its sections, in order."""
    text = (DOCS / page).read_text()
    if section:
        _, heading, text = text.partition(f"\n## {section}\n")
        assert heading, f"{page} has no section {section!r}"
        text, _, _ = text.partition("\n## ")
    for found in _BLOCK.finditer(text):
        kind, _, argument = found["what"].partition(": ")
        yield Block(kind, argument, found["text"])


class PageRun:
    """Runs the blocks of a page one after the other, in one directory and with a given environment and no other."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self._environment = dict(environment)
        self._settings = ""
        self.printed = ""
        """By the commands that ran last, on stdout and stderr."""
        self._servers = ExitStack()
        self._server_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    def perform(self, block: Block) -> None:
        match block.kind:
            case "settings":
                self._settings = block.text
            case "file":
                file = self.directory / block.argument
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text)
            case "run":
                self.run(block.text)
            case "serve until":
                self._serve(block)
            case "output":
                assert self.has_printed(block.text), f"the page says\n{block.text}\nthe commands print\n{self.printed}"

    def run(self, commands: str, *, fails: bool = False) -> None:
        done = subprocess.run(
            self._command(commands),
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        self.printed = done.stdout
        assert (done.returncode != 0) == fails, f"exit code {done.returncode} of\n{commands}\n{done.stdout[-6_000:]}"

    def _command(self, commands: str) -> list[str]:
        return ["bash", "-euo", "pipefail", "-c", f"{self._settings}\n{commands}"]

    def _serve(self, block: Block) -> None:
        self._server_count += 1
        log = self.directory / f"server-{self._server_count}.log"
        with log.open("wb") as talk:
            process = subprocess.Popen(
                self._command(block.text),
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=talk,
                stderr=talk,
                start_new_session=True,
            )
        self._servers.callback(_stop, process)
        wait_until(
            lambda: process.poll() is not None or block.argument in log.read_text(errors="replace"),
            f"{block.text} says {block.argument!r}",
            READY_WITHIN_S,
        )
        assert process.poll() is None, f"{block.text}\n{log.read_text(errors='replace')[-3_000:]}"

    def has_printed(self, expected: str) -> bool:
        """Whether the last commands have printed these lines one after the other, perhaps among others."""
        pattern = ".*?".join(re.escape(part) for part in _trimmed(expected).split("..."))
        return re.search(f"^{pattern}$", _trimmed(self.printed), re.DOTALL | re.MULTILINE) is not None


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def _trimmed(text: str) -> str:
    """Without the spaces at the ends of lines, which tables have and pages do not show."""
    return "\n".join(line.rstrip() for line in text.splitlines())


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """The shell and whatever it has started; they lead a session of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
            return
