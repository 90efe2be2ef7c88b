"""The examples of README and docs, run as a reader runs them: in order, in a directory, against real brokers.

    `python` blocks          are run by this Python, each in a process of its own; tests are run by pytest
    `console` blocks         each line that begins with `$ ` is run by a shell and must succeed; `\\` continues it
                             other lines are what the command prints: any numbers fit, `...` is any text
    `$ sskafka start`        runs in the background on free ports, until the next one or the end of the page;
    `$ sskafka cluster up`   so does a cluster
    `# ... Ctrl+C ...`       behind a command: it runs until it is stopped; it must print something and still run
    localhost:9092           is replaced by the address of the broker that runs; so are the ports 8080, 8001 and 9180
    `python client/...`      has the addresses of the brokers that run, and finds keys and payloads at its input

A comment before a block says what else is to be known, which readers of the source see:

    <!-- not run: needs Docker -->     nothing runs the block, for a reason that holds on any machine
    <!-- with Spark -->                tests/pages runs the block: `make spark-test`
    <!-- with Kafka's tools -->        tests/interop runs the block: `make interop`
    <!-- with containers -->           tests/image runs the block: `make image-test`
    <!-- endless -->                   a Python program that runs until it is stopped
    <!-- file: NAME -->                the content of a file for the blocks below
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, Self

from page_servers import Addresses, PageServer, is_server

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^(?:<!-- ([^>]+) -->\n+)?```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s{2,}#\s(.*)$")
VARIABLE = re.compile(r"(?:export )?([A-Z_]+)=(.*)")
FILE = "file: "
LINE_SECONDS_MAX = 120
PAGE_SECONDS_MAX = 400
"""On a machine that does much else; a page needs a quarter of a minute."""
SETTLED_SECONDS_MAX = 20
LOOKS = re.compile(r"^sskafka \w+ (describe|list|lag|status)\b")
STILL_RUNS_S = 0.5
STOP_SECONDS_MAX = 10
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
    "docker": "needs a container engine; make image-test runs it",
}
"""Beginnings of lines that are not run, and why."""
CURL_SETTINGS = Path(__file__).parent / "curl"
"""A .curlrc, with which curl fails for the status codes of errors."""
NEEDS_TERMINAL = re.compile(r"sskafka user add (?!.*--password)")
TERMINAL = Path(__file__).parent / "page_terminal.py"
PASSWORD = "alice-secret"
LAB_SCRIPT = re.compile(r"\bpython (client/\w+\.py)")
TYPED = {"client/produce.py": "".join(f"key-{number}\nhello\n" for number in range(10))}
"""What a reader types into a program: a key and a payload for each partition."""


class PageBlock(NamedTuple):
    language: str
    text: str
    mark: str
    """The comment before the block, or nothing."""
    line: int


class Command(NamedTuple):
    line: str
    printed: list[str]
    """What the page says that the command prints."""
    is_endless: bool


def blocks_of(page: Path) -> Iterator[PageBlock]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield PageBlock(found[2], found[3], found[1] or "", text.count("\n", 0, found.start(2)) + 1)


def is_run(block: PageBlock) -> bool:
    """Return whether a test without Spark runs the block, or writes it to a file."""
    if block.mark.startswith(FILE):
        return True
    return block.language in {"python", "console"} and block.mark in {"", "endless"}


def commands_of(text: str) -> Iterator[Command]:
    """Yield the commands of a console block with what they print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = part.rstrip("\n").split("\n")
        while first.endswith("\\"):
            first = first.removesuffix("\\") + rest.pop(0).strip()
        comment = COMMENT.search(first)
        yield Command(COMMENT.sub("", first), rest, comment is not None and "Ctrl+C" in comment[1])


def missing_lines(expected: list[str], printed: str) -> list[str]:
    """Return the lines that were not printed, after the lines before them. Numbers and spaces may differ."""
    found = iter(" ".join(line.split()) for line in printed.splitlines())
    missing = []
    for line in expected:
        pattern = re.compile(_pattern(line))
        if line.strip() not in {"", "..."} and not any(pattern.fullmatch(candidate) for candidate in found):
            missing.append(line)
    return missing


def _pattern(line: str) -> str:
    words = re.split(r"(\.\.\.|\d+)", " ".join(line.split()))
    return "".join(".*" if word == "..." else r"\d+" if word.isdigit() else re.escape(word) for word in words)


class PageRun:
    """Runs pages in a directory. The server that a page has started runs until the next one, or until the end."""

    def __init__(
        self,
        directory: Path,
        *,
        at: Addresses | None = None,
        line_seconds_max: float = LINE_SECONDS_MAX,
        left_out: Iterable[str] = LEFT_OUT,
    ) -> None:
        """`at`: brokers that run already. `left_out`: beginnings of lines that are not run."""
        self.directory = directory
        self._server: PageServer | None = None
        self._at = at
        self._line_seconds_max = line_seconds_max
        self._left_out = tuple(left_out)
        self._variables: dict[str, str] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._stop_server()

    def run(self, page: Path, *, given: str = "") -> int:
        """Run the commands of `given`, then the page; return the number of its blocks that were run."""
        self.run_console(given)
        run = [block for block in blocks_of(page) if is_run(block)]
        for block in run:
            self.run_block(block)
        return len(run)

    def run_block(self, block: PageBlock) -> None:
        if block.mark.startswith(FILE):
            (self.directory / block.mark.removeprefix(FILE)).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self._run_python(block)
        else:
            self.run_console(block.text)

    def run_console(self, text: str) -> None:
        for command in commands_of(text):
            self._run_command(command)

    def _run_python(self, block: PageBlock) -> None:
        if "localhost:" in block.text:
            self._ensure_server()
        example = self.directory / "test_example.py"
        example.write_text(self._placed(block.text), encoding="utf-8")
        program = PYTEST if "def test_" in block.text else ("-c", RUN_EXAMPLE)
        self._call([sys.executable, *program, str(example)], Command(block.text, [], block.mark == "endless"))

    def _run_command(self, command: Command) -> None:
        if command.line.startswith(self._left_out):
            return
        if is_server(command.line):
            self._start_server(command)
            return
        self._ensure_server()
        variable = VARIABLE.fullmatch(command.line)
        line = self._placed(command.line)
        if variable is not None:
            shown = f'{line}; printf %s "${variable[1]}"'
            self._variables[variable[1]] = self._call(_shell(shown), command)
        elif command.line.endswith(" &"):
            self._begin(line.removesuffix(" &"))
        else:
            self._call(_shell(line), command)

    def _start_server(self, command: Command) -> None:
        self._stop_server()
        server = PageServer(command.line, self.directory, self._environment())
        self._server = server
        self._at = server.start()
        missing = missing_lines(command.printed, server.printed)
        assert not missing, f"{command.line}\ndid not print {missing}, but\n{server.printed}"

    def _ensure_server(self) -> None:
        if self._at is None:
            self._start_server(Command("sskafka start", [], is_endless=True))

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _placed(self, text: str) -> str:
        if self._at is None:
            return text
        text = re.sub(r"(localhost:909[2-4],?)+", self._at.bootstrap, text)
        text = re.sub(r"localhost:(8080|8001)", self._at.http, text)
        text = LAB_SCRIPT.sub(rf"python {ROOT}/\1 -b {self._at.lab}", text)
        return text.replace("localhost:9180", self._at.adr)

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, **self._variables, "PATH": path, "PYTHONUNBUFFERED": "1"}
        environment["CURL_HOME"] = str(CURL_SETTINGS)
        if self._at is not None:
            environment["SSKAFKA_BOOTSTRAP"] = self._at.bootstrap
        return environment

    def _begin(self, line: str) -> None:
        """Run a command beside those that follow, until the end of the page."""
        process = subprocess.Popen(
            _shell(line),
            cwd=self.directory,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._stack.callback(_kill_session, process)

    def _call(self, words: list[str], command: Command) -> str:
        if command.is_endless:
            self._call_endless(words, command)
            return ""
        deadline = time.monotonic() + SETTLED_SECONDS_MAX
        while True:
            printed, missing = self._call_once(words, command)
            if not missing:
                return printed
            # A group that is still rebalancing, for instance: commands that only look may look again.
            may_look_again = LOOKS.search(command.line) is not None and time.monotonic() < deadline
            assert may_look_again, f"{command.line}\ndid not print {missing}, but\n{printed}"

    def _call_once(self, words: list[str], command: Command) -> tuple[str, list[str]]:
        """Return what the command printed, and the lines of the page that are missing there."""
        if NEEDS_TERMINAL.match(command.line):
            words = [sys.executable, str(TERMINAL), PASSWORD, *words]
        try:
            done = subprocess.run(
                words,
                cwd=self.directory,
                env=self._environment(),
                input=next((text for program, text in TYPED.items() if program in command.line), ""),
                capture_output=True,
                text=True,
                timeout=self._line_seconds_max,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{command.line}\ndid not end within {self._line_seconds_max:g} s") from None
        assert done.returncode == 0, f"{command.line}\n{done.stdout}{done.stderr}"
        return done.stdout, missing_lines(command.printed, done.stdout + done.stderr)

    def _call_endless(self, words: list[str], command: Command) -> None:
        output = self.directory / "endless.txt"
        with output.open("wb") as sink:
            process = subprocess.Popen(
                words,
                cwd=self.directory,
                env=self._environment(),
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            until = time.monotonic() + self._line_seconds_max
            while output.stat().st_size == 0 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(STILL_RUNS_S)
            printed = output.read_text(errors="replace")
            assert printed, f"{command.line}\nprinted nothing"
            assert process.poll() is None, f"{command.line}\nended: {printed}"
        finally:
            _kill_session(process)


def _shell(line: str) -> list[str]:
    return ["bash", "-o", "pipefail", "-c", line]


def _kill_session(process: "subprocess.Popen[bytes]") -> None:
    """End a command as Ctrl+C does, then kill whatever it has started."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(STOP_SECONDS_MAX)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
