"""Many partitions on a cluster: duration of start, topic creation and failover, and CPU usage when idle.

    python -m benchmarks.many_partitions [--partitions 1000] [--brokers 3]

`sskafka cluster up` starts the cluster; brokers are killed by the pid in their pid files.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import ElectionType, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import STOP_SECONDS_MAX
from benchmarks.machine import describe
from benchmarks.processes import read_cpu, read_rss_bytes

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TOPIC = "many"
TIMEOUT_S = 120.0
SETTLE_S = 5.0
IDLE_S = 20.0
POLL_S = 0.02


class Cluster:
    """A running `sskafka cluster up`."""

    def __init__(self, directory: Path, process: subprocess.Popen[str], bootstrap: str, ready_seconds: float) -> None:
        self.directory = directory
        self.process = process
        self.bootstrap = bootstrap
        self.ready_seconds = ready_seconds
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def pid(self, node_id: int) -> int:
        return int((self.directory / f"broker-{node_id}" / "broker.pid").read_text())

    def leaders(self) -> list[int]:
        topic = self.admin.list_topics(TOPIC, timeout=TIMEOUT_S).topics[TOPIC]
        return [partition.leader for partition in topic.partitions.values()]

    def in_sync(self) -> list[int]:
        """Return the number of in-sync replicas of each partition."""
        topic = self.admin.list_topics(TOPIC, timeout=TIMEOUT_S).topics[TOPIC]
        return [len(partition.isrs) for partition in topic.partitions.values()]

    def controller(self) -> int:
        return int(self.admin.list_topics(timeout=TIMEOUT_S).controller_id)


@contextmanager
def running(directory: Path, brokers: int) -> Iterator[Cluster]:
    options = [] if (directory / "broker-1").exists() else ["--kafka-port", "0", "--no-http", "--no-adr"]
    command = [SSKAFKA, "cluster", "up", "-n", str(brokers), "--dir", str(directory), *options]
    began_at = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith("READY bootstrap="):
            raise SystemExit("the cluster did not start")
        yield Cluster(directory, process, line.split("=", 1)[1].strip(), time.monotonic() - began_at)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS_MAX)
        process.stdout.close()


def seconds_until(condition: Callable[[], bool], what: str) -> float:
    began_at = time.monotonic()
    while not condition():
        if time.monotonic() - began_at > TIMEOUT_S:
            raise SystemExit(f"{what}: not within {TIMEOUT_S:.0f} s")
        time.sleep(POLL_S)
    return time.monotonic() - began_at


def create(cluster: Cluster, partitions: int, replicas: int) -> dict[str, float]:
    began_at = time.monotonic()
    new = NewTopic(TOPIC, num_partitions=partitions, replication_factor=replicas)
    cluster.admin.create_topics([new], request_timeout=TIMEOUT_S)[TOPIC].result(TIMEOUT_S)
    answered = time.monotonic() - began_at
    write_to_all(cluster.bootstrap, partitions)
    return {"create, answered s": answered, "create, a record in each s": time.monotonic() - began_at}


def write_to_all(bootstrap: str, partitions: int) -> None:
    """Write a record to every partition with acks=all."""
    failed: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for partition in range(partitions):
        report = lambda error, _: failed.append(str(error)) if error is not None else None  # noqa: E731
        producer.produce(TOPIC, b"record", partition=partition, on_delivery=report)
    if producer.flush(TIMEOUT_S) or failed:
        raise SystemExit(f"writing to every partition failed: {failed[:1]}")


def spread_leaders(cluster: Cluster, partitions: int, brokers: int) -> None:
    """Elect the preferred leaders, because restarts leave leadership with the brokers that started first."""
    cluster.admin.elect_leaders(ElectionType.PREFERRED).result(TIMEOUT_S)
    fair = partitions // brokers // 2
    seconds_until(lambda: min(Counter(cluster.leaders()).values()) > fair, "leadership is spread")


def idle_cpu(cluster: Cluster, brokers: int) -> dict[str, float]:
    """Return the CPU usage of each idle broker, in percent of a core."""
    pids = [cluster.pid(node_id) for node_id in range(1, brokers + 1)]
    time.sleep(SETTLE_S)
    before = [read_cpu(pid).seconds for pid in pids]
    time.sleep(IDLE_S)
    spent = [read_cpu(pid).seconds - earlier for pid, earlier in zip(pids, before, strict=True)]
    found = {f"idle CPU of broker {number} %": 100 * one / IDLE_S for number, one in enumerate(spent, 1)}
    return {**found, "RSS of a broker MB": max(read_rss_bytes(pid) for pid in pids) / 1e6}


def fail_over(cluster: Cluster, partitions: int) -> dict[str, float]:
    """Kill the active controller, which also leads a share of the partitions."""
    victim = cluster.controller()
    led = cluster.leaders().count(victim)
    began_at = time.monotonic()
    os.kill(cluster.pid(victim), signal.SIGKILL)
    seconds_until(
        lambda: victim not in (leaders := cluster.leaders()) and -1 not in leaders, "every partition has a new leader"
    )
    named = time.monotonic() - began_at
    write_to_all(cluster.bootstrap, partitions)
    return {
        "failover, partitions of the dead broker": led,
        "failover, all led again s": named,
        "failover, a record in each s": time.monotonic() - began_at,
    }


def measure(directory: Path, partitions: int, brokers: int) -> dict[str, float]:
    replicas = min(3, brokers)
    figures: dict[str, float] = {}
    with running(directory, brokers) as cluster:
        figures["start, empty s"] = cluster.ready_seconds
        figures |= create(cluster, partitions, replicas)
        figures |= idle_cpu(cluster, brokers)
    with running(directory, brokers) as cluster:
        figures["start, after a clean stop s"] = cluster.ready_seconds
        figures["all in sync after that s"] = seconds_until(lambda: min(cluster.in_sync()) == replicas, "in sync")
        spread_leaders(cluster, partitions, brokers)
        figures |= fail_over(cluster, partitions)
    with running(directory, brokers) as cluster:
        figures["start, one broker was killed s"] = cluster.ready_seconds
        figures["all in sync then s"] = seconds_until(lambda: min(cluster.in_sync()) == replicas, "in sync")
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_partitions", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sskafka-many-") as directory:
        figures = measure(Path(directory) / "cluster", arguments.partitions, arguments.brokers)
    about = describe(f"{arguments.partitions} partitions, {arguments.brokers} brokers", "many_partitions")
    for name, value in (*about.items(), *((name, f"{value:.2f}") for name, value in figures.items())):
        print(f"{name}: {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"about": about, "figures": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
