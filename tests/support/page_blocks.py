"""The examples of a page of README and docs, run as a reader runs them: in order, in a directory, against real brokers.

    `python` blocks       are run by this Python, each in a process of its own; tests are run by pytest
    `console` blocks      each line that begins with `$ ` is run by a shell; a line must succeed
    `$ sskafka start`     runs in the background, on free ports, until the next one or the end of the page
    localhost:9092        is replaced by the address of the broker that runs, and so is localhost:8080

A block that is not run has the reason in a comment before it, which readers of the source see:

    <!-- not run: needs Docker -->

`<!-- endless -->` is for a block that runs until it is stopped: it must still run after ENDLESS_S.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:<!-- (not run: [^>]+|endless) -->\n+)?```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s{2,}#.*$")
LINE_SECONDS_MAX = 60
ENDLESS_S = 4.0
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".")
RUN_EXAMPLE = """
import ast, asyncio, inspect, sys
source = open(sys.argv[1], encoding="utf-8").read()
result = eval(compile(source, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {"__name__": "__main__"})
if inspect.iscoroutine(result):
    asyncio.run(result)
"""
LEFT_OUT = {
    "pip install": "the environment of the test has it",
    "kcat": "is not from PyPI; make interop runs it",
    "docker": "there is no container engine",
}
"""Beginnings of lines that are not run, and why."""


class PageBlock(NamedTuple):
    language: str
    text: str
    mark: str
    """Why it is not run, `endless`, or nothing."""


class Addresses(NamedTuple):
    bootstrap: str
    http: str


StartBroker = Callable[[list[str]], Addresses]
"""Starts a broker with these options instead of the one that runs."""


def blocks_of(page: Path) -> Iterator[PageBlock]:
    for mark, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in {"python", "console"}:
            yield PageBlock(language, text, mark)


class PageRun:
    def __init__(self, directory: Path, start_broker: StartBroker) -> None:
        self._directory = directory
        self._start_broker = start_broker
        self._at: Addresses | None = None

    def run(self, page: Path) -> int:
        """Return the number of blocks that were run."""
        run = [block for block in blocks_of(page) if not block.mark.startswith("not run")]
        for block in run:
            if block.language == "python":
                self._run_python(block)
            else:
                self._run_console(block)
        return len(run)

    def _run_python(self, block: PageBlock) -> None:
        if "localhost:" in block.text and self._at is None:
            self._at = self._start_broker([])
        example = self._directory / "test_example.py"
        example.write_text(self._placed(block.text), encoding="utf-8")
        program = PYTEST if "def test_" in block.text else ("-c", RUN_EXAMPLE)
        self._call([sys.executable, *program, str(example)], block.text, is_endless=block.mark == "endless")

    def _run_console(self, block: PageBlock) -> None:
        for line in block.text.splitlines():
            if line.startswith("$ "):
                self._run_line(COMMENT.sub("", line.removeprefix("$ ")))

    def _run_line(self, line: str) -> None:
        if line.startswith(tuple(LEFT_OUT)):
            return
        if line.startswith("sskafka start"):
            self._at = self._start_broker(shlex.split(line)[2:])
            return
        if self._at is None:
            self._at = self._start_broker([])
        self._call(["bash", "-o", "pipefail", "-c", self._placed(line)], line)

    def _placed(self, text: str) -> str:
        if self._at is None:
            return text
        return text.replace("localhost:9092", self._at.bootstrap).replace("localhost:8080", self._at.http)

    def _call(self, words: list[str], shown: str, *, is_endless: bool = False) -> None:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}
        if self._at is not None:
            environment["SSKAFKA_BOOTSTRAP"] = self._at.bootstrap
        seconds = ENDLESS_S if is_endless else LINE_SECONDS_MAX
        try:
            done = subprocess.run(
                words,
                cwd=self._directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            assert is_endless, f"{shown}\ndid not end within {LINE_SECONDS_MAX} s"
            return
        assert not is_endless, f"{shown}\nended: {done.stdout}{done.stderr}"
        assert done.returncode == 0, f"{shown}\n{done.stdout}{done.stderr}"
