"""A program that runs Spark, with all that it starts: killed in part, paused, looked at from outside.

The program leads a session of processes. Java and the workers stay in it, whoever of their parents dies.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from waiting import wait_until


class ProcessSession:
    def __init__(self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("ab") as talk:
            self.process = subprocess.Popen(
                command, stdout=talk, stderr=talk, env={**os.environ, **(environment or {})}, start_new_session=True
            )

    def talk(self) -> str:
        return self._log.read_text(errors="replace")[-4_000:]

    def wait(self, timeout_s: float = 240) -> int:
        return self.process.wait(timeout_s)

    def members(self) -> list[int]:
        """The processes that are alive."""
        return [pid for pid, _ in self._names()]

    def _names(self) -> Iterator[tuple[int, str]]:
        for directory in Path("/proc").iterdir():
            with suppress(OSError):  # it may end while it is looked at
                if directory.name.isdecimal() and _session_of(directory) == self.process.pid:
                    yield int(directory.name), (directory / "comm").read_text().strip()

    def kill_driver(self) -> None:
        """The Python process that people started, and nothing but that."""
        self.process.kill()
        self.process.wait()

    def kill_java(self) -> None:
        (java,) = self.java()
        os.kill(java, signal.SIGKILL)

    def java(self) -> list[int]:
        return [pid for pid, name in self._names() if name == "java"]

    def workers(self) -> list[int]:
        """The Python processes that Java has started: those that run tasks, and the one that forks them."""
        return [pid for pid, name in self._names() if name.startswith("python") and pid != self.process.pid]

    def send(self, number: signal.Signals) -> None:
        """To every process of the session."""
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait_until_gone(self, timeout_s: float = 60) -> None:
        wait_until(lambda: not self.members(), "every process has ended by itself", timeout_s)

    def close(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait()


def _session_of(directory: Path) -> int:
    """0 for a process that has ended and is only waited for."""
    state, _, _, session = (directory / "stat").read_text().rpartition(")")[2].split()[:4]
    return 0 if state == "Z" else int(session)
