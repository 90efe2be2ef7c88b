"""Processes around a run that are killed or leave: it goes on, or ends with a reason and a next step."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pipeline_process import SSKAFKA, STEP_TIMEOUT_S
from process_session import ProcessSession
from test_spark_source import numbers
from waiting import wait_until

from sskafka.pipelines.shipped.reading import committed_records

FILE = """\
name: {name}
sources:
  numbers: {{topic: {name}, format: text, max_offsets_per_trigger: 500}}
sinks:
  - topic: {{topic: {name}-out, value: value}}
trigger: 100 milliseconds
"""
PLANNER = "python_streaming_source_runner"
RESTARTS_MAX = 3
ASKED_WITHIN_S = 1.0
"""Ten triggers: Java has sent a request and waits for the answer."""


class Run:
    """A pipeline in a process, and its input."""

    def __init__(self, directory: Path, bootstrap: str, topic: str, produce: Callable[..., None]) -> None:
        self.topic = topic
        self.bootstrap = bootstrap
        self._produce = produce
        self.count = 0
        self.file = directory / "pipeline.yaml"
        self.file.write_text(FILE.format(name=topic))
        command = [SSKAFKA, "pipeline", "run", str(self.file), "-b", bootstrap, "--master", "local[2]"]
        self.process = ProcessSession(command, directory / "run.log")

    def add(self, count: int = 100) -> None:
        self._produce(self.topic, numbers(self.count, self.count + count), 0)
        self.count += count

    def written(self) -> list[int]:
        return sorted(int(value or b"") for _, value in committed_records(self.bootstrap, f"{self.topic}-out"))

    def wait_until_written(self) -> None:
        def is_written() -> bool:
            assert self.process.process.poll() is None, self.process.talk()
            return f"{self.count} out" in self.process.talk()

        wait_until(is_written, f"{self.count} records are written", STEP_TIMEOUT_S)
        assert self.written() == list(range(self.count))

    def planner(self) -> int:
        """The process that plans the batches of the query."""

        def found() -> list[int]:
            return [pid for pid in self.process.workers() if PLANNER in command_of(pid)]

        wait_until(lambda: bool(found()), "there is a planner", STEP_TIMEOUT_S)
        return found()[0]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.fixture
def run(tmp_path: Path, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]) -> Iterator[Run]:
    running = Run(tmp_path, bootstrap, new_topic(1, "numbers"), produce)
    yield running
    running.process.close()


def test_a_query_goes_on_after_its_planner_was_killed_until_that_happens_again_and_again(run: Run) -> None:
    """A killed planner once ended the run with `error: topic: Broken pipe`, and nothing else."""
    run.add()
    run.wait_until_written()
    for attempt in range(RESTARTS_MAX):
        planner = run.planner()
        if attempt:  # amid a request
            os.kill(planner, signal.SIGSTOP)
            time.sleep(ASKED_WITHIN_S)
        os.kill(planner, signal.SIGKILL)
        run.add()
        run.wait_until_written()
    assert run.process.talk().count("is restarted: a Python process of Spark was killed or has crashed") == RESTARTS_MAX

    os.kill(run.planner(), signal.SIGKILL)
    run.add()
    assert run.process.wait() == 1
    *_, error, hint = run.process.talk().splitlines()
    assert error.startswith("error: topic: a Python process of Spark was killed or has crashed (")
    assert hint.startswith("  try: run the pipeline again: it continues at its checkpoint; `dmesg` shows")
    assert "was killed or has crashed" in history_of(run.topic, run.bootstrap)


def test_a_run_whose_messages_nobody_reads_ends_and_its_history_says_why(
    tmp_path: Path, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    """As in `sskafka pipeline run clicks.yaml 2>&1 | head`."""
    topic, file = new_topic(1, "numbers"), tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(name=topic))
    produce(topic, numbers(0, 100), 0)
    command = [SSKAFKA, "pipeline", "run", str(file), "-b", bootstrap, "--master", "local[2]"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert "connected to" in run.stderr.readline()
        run.stderr.close()
        assert run.wait(STEP_TIMEOUT_S) == 1
    assert "has closed its end of the pipe" in history_of(topic, bootstrap)


def history_of(pipeline: str, bootstrap: str) -> str:
    command = [SSKAFKA, "pipeline", "status", "--history", pipeline, "-b", bootstrap]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
