"""Clients from outside PyPI, as the tests call them: kcat, and Apache Kafka's tools by class name."""

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.apache_kafka import KafkaLibs, run_tool

# Names of the kinds of broker that tests run against.
APACHE_KAFKA, SSKAFKA = "apache-kafka", "sskafka"
KCAT_SECONDS_MAX = 60


class Message(NamedTuple):
    """A record as a consumer shows it."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: str | None
    value: str | None
    headers: tuple[tuple[str, str | None], ...]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def wait_for_next_millisecond() -> None:
    """Records written from now on have a later timestamp than those before."""
    began_ms = now_ms()
    while now_ms() == began_ms:
        time.sleep(0.0002)


@dataclass(frozen=True, slots=True)
class Kcat:
    """kcat against one broker. It consumes without a group."""

    program: str
    bootstrap: str

    def run(self, *arguments: str, stdin: str = "") -> str:
        command = [self.program, "-b", self.bootstrap, "-m", "20", *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=KCAT_SECONDS_MAX, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def metadata(self) -> dict[str, Any]:
        listing: dict[str, Any] = json.loads(self.run("-L", "-J"))
        return listing

    def produce(self, topic: str, lines: Sequence[str], *options: str, partition: int = 0) -> None:
        self.run("-P", "-t", topic, "-p", str(partition), *options, stdin="".join(f"{line}\n" for line in lines))

    def consume(self, topic: str, *options: str, partition: int = 0, offset: str = "beginning") -> list[Message]:
        """Everything from `offset` to the end of the partition."""
        where = ("-t", topic, "-p", str(partition), "-o", offset)
        output = self.run("-C", *where, "-e", "-q", "-J", "-X", "fetch.wait.max.ms=20", *options)
        return [_message(json.loads(line)) for line in output.splitlines()]


def _message(envelope: dict[str, Any]) -> Message:
    names_and_values = envelope.get("headers", [])
    return Message(
        envelope["offset"],
        envelope["ts"],
        envelope["tstype"],
        envelope["key"],
        envelope["payload"],
        tuple(zip(names_and_values[::2], names_and_values[1::2], strict=True)),
    )


@dataclass(frozen=True, slots=True)
class JavaTools:
    """Kafka's command-line tools; each call is a JVM of its own and takes a second or two."""

    libs: KafkaLibs

    def run(self, class_name: str, *arguments: str, stdin: str = "") -> str:
        """Standard output of a tool that ended well and complained of nothing."""
        done = run_tool(self.libs, class_name, *arguments, stdin=stdin)
        assert done.returncode == 0, f"{class_name} {arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def fail(self, class_name: str, *arguments: str) -> str:
        """Everything that a tool said that was expected to fail."""
        done = run_tool(self.libs, class_name, *arguments)
        assert done.returncode != 0, f"{class_name} {arguments} did not fail:\n{done.stdout}"
        return done.stdout + done.stderr
