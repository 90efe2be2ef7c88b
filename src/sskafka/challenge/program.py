"""The program under test: `your_program.sh` in a directory, run as a process.

It leads a process group, so that its child processes end with it. Its output goes to a file, which is shown when a
stage fails, or always with `debug: true` in codecrafters.yml.
"""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

PROGRAM = "your_program.sh"
SETTINGS_FILE = "codecrafters.yml"
HOST = "localhost"

_POLL_SECONDS = 0.02
_CONNECT_SECONDS_MAX = 1.0
_STOP_SECONDS_MAX = 20.0
_GRACE_SECONDS = 2.0


class ProgramError(Exception):
    """The program does not exist, does not start, or does not stop."""


class Repository(NamedTuple):
    """A directory with a program under test."""

    directory: Path
    is_debug: bool

    @classmethod
    def at(cls, directory: Path) -> "Repository":
        program = directory / PROGRAM
        if not program.is_file():
            raise ProgramError(f"there is no {PROGRAM} in {directory}")
        if not os.access(program, os.X_OK):
            raise ProgramError(f"{program} is not executable; run chmod +x")
        return cls(directory, _read_debug(directory / SETTINGS_FILE))


def _read_debug(path: Path) -> bool:
    """Read `debug: true` or `debug: false`, the only setting that the tester knows."""
    if not path.is_file():
        raise ProgramError(f"there is no {path.name} in {path.parent}; it must contain the line debug: false")
    lines = [line.partition("#")[0].partition(":") for line in path.read_text().splitlines()]
    settings = {key.strip(): value.strip().lower() for key, _, value in lines}
    if settings.get("debug") not in {"true", "false"}:
        raise ProgramError(f"{path} contains neither debug: true nor debug: false")
    return settings["debug"] == "true"


class Program:
    def __init__(self, repository: Repository, properties: Path, port: int) -> None:
        self.port = port
        self._repository = repository
        self._properties = properties
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, seconds_max: float) -> None:
        """Start the program and return when the port accepts connections."""
        if _is_listening(self.port):
            raise ProgramError(f"port {self.port} is in use before the program is started")
        with _signals_deferred():
            self._process = subprocess.Popen(
                [f"./{PROGRAM}", str(self._properties)],
                cwd=self._repository.directory,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + seconds_max
        while not _is_listening(self.port):
            if self._process.poll() is not None:
                raise ProgramError(f"the program exited with code {self._process.returncode} before it listened")
            if time.monotonic() > deadline:
                raise ProgramError(f"nothing listens on port {self.port} after {seconds_max:g} s")
            time.sleep(_POLL_SECONDS)

    @property
    def output(self) -> str:
        """Return the program's output so far."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def stop(self) -> None:
        """Send SIGTERM and wait; raise ProgramError if the program does not stop."""
        process = self._process
        assert process is not None, "the program was not started"
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise ProgramError(f"the program is still running {_STOP_SECONDS_MAX:g} s after SIGTERM") from None
        if _is_listening(self.port):
            raise ProgramError(f"port {self.port} is still in use after SIGTERM: does {PROGRAM} exec the program?")

    def close(self) -> None:
        """End all processes of the group: SIGTERM, then SIGKILL."""
        if self._process is not None:
            _end_group(self._process)
        self._output.close()


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Delay signals while a process is started: a signal in between would leave a process that nobody ends."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
        yield
        return
    caught: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _frame: caught.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in caught:
            signal.raise_signal(late)


def _end_group(leader: "subprocess.Popen[bytes]") -> None:
    _signal_group(leader.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        leader.wait(_GRACE_SECONDS)
    _signal_group(leader.pid, signal.SIGKILL)
    leader.wait()


def _signal_group(leader: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # all processes have ended
        os.killpg(leader, number)


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), _CONNECT_SECONDS_MAX).close()
    except OSError:
        return False
    return True
