"""Kafka's command-line tools, many calls in one JVM."""

import json
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.apache_kafka import KafkaLibs

PROGRAM = Path(__file__).parents[1] / "java" / "ToolRunner.java"


class Result(NamedTuple):
    exit: int
    out: str
    err: str


class ToolRunner:
    """A JVM that runs tools until it is closed."""

    def __init__(self, libs: KafkaLibs, log: Path) -> None:
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            libs.java(str(PROGRAM)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._log.close()

    def run(self, main: str, arguments: list[str], stdin: str = "", seconds: int = 30) -> Result:
        command = {"main": main, "arguments": arguments, "stdin": stdin, "seconds": seconds}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM ended: {self._log.name}"
        answer = json.loads(line)
        return Result(answer["exit"], answer["out"], answer["err"])


def run_until(libs: KafkaLibs, main: str, arguments: list[str], text: str, seconds: int) -> Result:
    """Run a tool that goes on until it is stopped, up to the first line that has `text`; its output so far."""
    command = libs.java(main, *arguments)
    tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    late = threading.Timer(seconds, tool.kill)
    late.start()
    lines: list[str] = []
    try:
        assert tool.stdout is not None
        for line in tool.stdout:
            lines.append(line)
            if text in line:
                break
    finally:
        late.cancel()
        tool.kill()
        tool.communicate()
    return Result(0, "".join(lines), "")
