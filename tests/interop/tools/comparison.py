"""Every call on both systems, and the table of what came of it."""

import difflib
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.apache_kafka import KafkaLibs
from benchmarks.brokers import free_ports
from differential.systems import Pair, System

from tools.commands import CALLS, MAIN, Call
from tools.known import reason_for
from tools.output import shape
from tools.runner import Result, ToolRunner, run_until

REPEATED_SECONDS_MAX = 60.0
PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
HEAD = """# Kafka's command-line tools

Each command runs against Apache Kafka 4.3.1 and against SSKafka; exit codes and output are compared. Ids, times,
addresses, measured numbers and the wording of error messages are not compared; the names of errors are. `make
compatibility` runs the commands and writes this page; `make interop` checks that it is up to date.

`--bootstrap-server` is not shown. Commands that fail are here too: "same" then means that both systems refuse them
with the same error.

| tool | command | result |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    call: Call
    kafka: list[str]
    sskafka: list[str]

    @property
    def is_same(self) -> bool:
        return self.kafka == self.sskafka

    @property
    def reason(self) -> str | None:
        """Why the outputs may differ; None where they must not."""
        return reason_for(self.call)

    def __str__(self) -> str:
        lines = difflib.unified_diff(self.kafka, self.sskafka, "Apache Kafka", "SSKafka", lineterm="", n=0)
        return "\n".join((f"{self.call.tool} {self.call.arguments}", *(line[:300] for line in lines)))


def run_all(pair: Pair, libs: KafkaLibs, directory: Path) -> list[Outcome]:
    """Run the calls in their order, on both systems at the same time."""

    def on(system: System) -> list[Result]:
        home = directory / system.name.replace(" ", "-")
        home.mkdir()
        with ToolRunner(libs, home / "jvm.log") as runner:
            return [_run_call(libs, runner, system, home, call) for call in CALLS]

    kafka, sskafka = pair.on_both(on)
    return [
        Outcome(call, _comparable(call, theirs), _comparable(call, ours))
        for call, theirs, ours in zip(CALLS, kafka, sskafka, strict=True)
    ]


def _run_call(libs: KafkaLibs, runner: ToolRunner, system: System, home: Path, call: Call) -> Result:
    """Run a call, again and again until its output has what it must have."""
    deadline = time.monotonic() + REPEATED_SECONDS_MAX
    while True:
        arguments = _arguments(system, home, call)
        if call.never_ends:
            result = run_until(libs, MAIN[call.tool], arguments, call.until, call.seconds)
        else:
            result = runner.run(MAIN[call.tool], arguments, call.stdin, call.seconds)
        if call.until in result.out:
            return result
        assert time.monotonic() < deadline, f"{call.tool} {call.arguments} on {system.name}: {result}"


def _arguments(system: System, home: Path, call: Call) -> list[str]:
    properties = system.data.with_name("server.properties")
    settings = dict(line.split("=", 1) for line in properties.read_text(encoding="utf-8").splitlines())
    words = {
        "at": system.bootstrap,
        "data": str(system.data),
        "properties": str(properties),
        "listeners": settings["listeners"],
        "map": settings["listener.security.protocol.map"],
        "port": str(free_ports(1)[0]),
    }
    if "{metadata}" in call.arguments:
        words["metadata"] = _copy_of_metadata(system, home, "*.log")
    if "{snapshot}" in call.arguments:
        words["snapshot"] = _copy_of_metadata(system, home, "*.checkpoint")
    for name, content in call.files.items():
        file = home / f"{name}.json"
        file.write_text(content, encoding="utf-8")
        words[name] = str(file)
    return [word.format_map(words) for word in shlex.split(call.arguments)]


def _copy_of_metadata(system: System, home: Path, pattern: str) -> str:
    """The newest file of the metadata log; the shell takes no file from a directory that a broker has locked."""
    deadline = time.monotonic() + REPEATED_SECONDS_MAX
    while True:
        files = sorted((system.data / "__cluster_metadata-0").glob(pattern))
        if files or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    copy = home / "copy-of-metadata" / files[-1].name
    copy.parent.mkdir(exist_ok=True)
    shutil.copyfile(files[-1], copy)
    return str(copy)


def _comparable(call: Call, result: Result) -> list[str]:
    lines = shape(result, numbers=call.has_counts)
    return [lines[0], *sorted(set(lines[1:]))] if call.is_sorted else lines


def page(outcomes: Iterable[Outcome]) -> str:
    return HEAD + "".join(_rows(outcomes))


def _rows(outcomes: Iterable[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        arguments = (
            outcome.call.arguments.replace("--bootstrap-server {at}", "").replace("{", "").replace("}", "").split()
        )
        result = "same" if outcome.reason is None else f"differs: {outcome.reason}"
        yield f"| {outcome.call.tool} | `{' '.join(arguments)}` | {result} |\n"
