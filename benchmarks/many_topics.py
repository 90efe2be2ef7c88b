"""Many topics on one broker: duration of their creation, of a stop, and of starts after a clean stop and after kill -9.

    python -m benchmarks.many_topics [--topics 3000]

Each topic has one partition and one record, so that no log is empty.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import STOP_SECONDS_MAX
from benchmarks.machine import describe
from benchmarks.processes import read_cpu

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TOPICS_PER_REQUEST = 500
TIMEOUT_S = 120.0


class TimedBroker:
    """A broker process, with how long it took to become ready."""

    def __init__(self, directory: Path) -> None:
        properties = directory / "server.properties"
        properties.write_text(f"node.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={directory / 'data'}\n")
        began_at = time.monotonic()
        with (directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [SSKAFKA, "start", str(properties), "--log-level", "info"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("READY"), f"the broker did not start, see {directory / 'broker.log'}"
        self.ready_s = time.monotonic() - began_at
        self.ready_cpu_s = read_cpu(self._process.pid).seconds
        self.bootstrap = line.split("bootstrap=")[1].split()[0]

    def end(self, number: signal.Signals) -> float:
        """Return the seconds until the process has ended."""
        began_at = time.monotonic()
        self._process.send_signal(number)
        self._process.wait(STOP_SECONDS_MAX)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return time.monotonic() - began_at


def fill(bootstrap: str, names: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for first in range(0, len(names), TOPICS_PER_REQUEST):
        topics = [NewTopic(name, 1, 1) for name in names[first : first + TOPICS_PER_REQUEST]]
        for created in admin.create_topics(topics, request_timeout=TIMEOUT_S).values():
            created.result()
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for name in names:
        producer.produce(name, b"record")
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0, "not all records were stored"


def measure(directory: Path, topics: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    broker = TimedBroker(directory)
    figures["start, empty s"] = broker.ready_s
    began_at = time.monotonic()
    fill(broker.bootstrap, [f"topic-{number}" for number in range(topics)])
    figures["a record in each topic s"] = time.monotonic() - began_at
    figures["first SIGTERM s"] = broker.end(signal.SIGTERM)
    broker = TimedBroker(directory)
    figures["start, after a clean stop s"] = broker.ready_s
    figures["start, after a clean stop CPU s"] = broker.ready_cpu_s
    figures["SIGTERM, nothing written s"] = broker.end(signal.SIGTERM)
    broker = TimedBroker(directory)
    broker.end(signal.SIGKILL)
    broker = TimedBroker(directory)
    figures["start, after kill -9 s"] = broker.ready_s
    figures["start, after kill -9 CPU s"] = broker.ready_cpu_s
    broker.end(signal.SIGKILL)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_topics", description=__doc__)
    parser.add_argument("--topics", type=int, default=3000)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sskafka-topics-") as directory:
        figures = measure(Path(directory), arguments.topics)
    about = describe(f"{arguments.topics} topics, 1 broker", "many_topics")
    for name, value in (*about.items(), *((name, f"{value:.2f}") for name, value in figures.items())):
        print(f"{name}: {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"about": about, "figures": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
