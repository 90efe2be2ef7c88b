"""Unavailability for producers when brokers are killed with SIGKILL under load, compared with Apache Kafka.

    python -m benchmarks.failover [--rounds 10] [--quick] [--no-kafka] [--markdown FILE] [--json FILE]

Both systems have their default settings. There are three brokers that are also voters; a topic with one partition per
broker, replication factor 3 and min.insync.replicas 2; and one librdkafka producer with acks=all and idempotence that
writes to all partitions continuously. A round kills one or two brokers with SIGKILL and measures the longest time in
which some partition acknowledged nothing.

    leader         a broker that leads a partition and is not the active controller
    controller     the active controller, which also leads a partition
    both in a row  the first broker is restarted at once, and one second later the controller is killed: for a while
                   only one of three voters is alive, so the time includes the start of a process
    restart        a broker is killed and restarted at once; measured at a partition without other replicas, so the time
                   includes the start of a process, too

Between rounds all replicas get back in sync, and the preferred replicas become leaders again.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import ElectionType, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import HOST, BrokerKind, apache_kafka_kind, free_ports, sskafka_kind
from benchmarks.clusters import ClusterKind
from benchmarks.machine import describe
from benchmarks.probe import NotReadyError, wait_until_ready
from sskafka.client.connection import Address, connect
from sskafka.client.errors import ClientError
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)

T = TypeVar("T")

BROKERS = 3
REPLICATED, LONE = "replicated", "lone"
RECOVERY_SECONDS_MAX = 120.0
STEADY_SECONDS = 2.0
TURN_SECONDS = 0.005
OUTSTANDING_MAX = 200
SECOND_KILL_SECONDS = 1.0
AFTERMATH_SECONDS = 1.0


class KillableCluster(ClusterKind):
    """A cluster whose processes can be killed and started individually."""

    def __init__(self, kind: BrokerKind, directory: Path) -> None:
        super().__init__(kind, BROKERS)
        self._directory = directory
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._ports: dict[int, int] = {}
        self._files: dict[int, Path] = {}

    @contextlib.contextmanager
    def started(self) -> Iterator["KillableCluster"]:
        ports = free_ports(BROKERS)
        files = self._write_properties(self._directory, ports, {})
        self._ports = dict(enumerate(ports, 1))
        self._files = dict(enumerate(files, 1))
        try:
            for node_id in self._files:
                self.start(node_id)
            for node_id, port in self._ports.items():
                self._await_ready(node_id, port)
            yield self
        finally:
            for process in self._processes.values():
                process.send_signal(signal.SIGKILL)
                process.wait()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def start(self, node_id: int) -> None:
        file = self._files[node_id]
        with file.with_name("broker.log").open("ab") as log:
            self._processes[node_id] = subprocess.Popen(
                self.command(file), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self, node_id: int) -> None:
        process = self._processes[node_id]
        process.kill()
        process.wait()

    def start_missing(self) -> None:
        for node_id, process in self._processes.items():
            if process.poll() is not None:
                self.start(node_id)

    def controller(self) -> int:
        """Return the id of the active controller, or -1 while no broker knows it."""
        return asyncio.run(self._controller())

    async def _controller(self) -> int:
        topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData()])
        for port in self._ports.values():
            with contextlib.suppress(ClientError):
                connection = await connect(Address(HOST, port))
                answer = await connection.request(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
                await connection.close()
                if answer.error_code == 0:
                    leader_id: int = answer.topics[0].partitions[0].leader_id
                    return leader_id
        return -1

    def _await_ready(self, node_id: int, port: int) -> None:
        try:
            wait_until_ready(
                HOST,
                port,
                time.monotonic(),
                lambda: self._processes[node_id].poll() is None,
                RECOVERY_SECONDS_MAX,
                brokers=BROKERS,
            )
        except NotReadyError as error:
            log = self._files[node_id].with_name("broker.log").read_text()[-2000:]
            raise NotReadyError(f"{self.name}, broker {node_id}: {error}\n{log}") from error


class Writer:
    """Writes to every partition of a topic continuously and records the times of acknowledgements."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._sent = [0] * partitions
        self._times: list[list[float]] = [[] for _ in range(partitions)]
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": int(RECOVERY_SECONDS_MAX * 1000),
                "log_level": 2,
            }
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self.failures: list[KafkaError] = []

    @contextlib.contextmanager
    def running(self) -> Iterator["Writer"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()

    def await_progress(self, after: float) -> None:
        """Return when every partition has acknowledged a record after that time."""
        wait_for(lambda: all(times and times[-1] > after for times in self._times), "every partition acknowledges")

    def longest_gap(self, begin: float, end: float) -> float:
        """Return the longest gap of the worst partition."""
        return max(_longest_gap(times, begin, end) for times in self._times)

    def _run(self) -> None:
        while not self._ended.is_set():
            for partition, times in enumerate(self._times):
                if self._sent[partition] - len(times) < OUTSTANDING_MAX:
                    self._producer.produce(
                        self._topic, b"x" * 100, partition=partition, on_delivery=partial(self._delivered, times)
                    )
                    self._sent[partition] += 1
            self._producer.poll(TURN_SECONDS)

    def _delivered(self, times: list[float], error: KafkaError | None, message: Message) -> None:
        if error is None:
            times.append(time.monotonic())
        else:
            self.failures.append(error)


def _longest_gap(times: list[float], begin: float, end: float) -> float:
    inside = [begin, *(at for at in times if begin < at < end), end]
    return max(later - earlier for earlier, later in pairwise(inside))


# -- rounds


class Failover:
    def __init__(self, cluster: KillableCluster) -> None:
        self._cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        self._lone_broker = 1
        self.scenarios: Mapping[str, Callable[[], float]] = {
            "leader": self._kill_leader,
            "controller": self._kill_controller,
            "both in a row": self._kill_both,
            "restart": self._restart,
        }

    def prepare(self) -> None:
        topics = [
            NewTopic(
                REPLICATED,
                num_partitions=BROKERS,
                replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]],
                config={"min.insync.replicas": "2"},
            ),
            NewTopic(LONE, num_partitions=1, replica_assignment=[[self._lone_broker]]),
        ]
        for done in self._admin.create_topics(topics).values():
            done.result()

    def recover(self) -> None:
        """Return when all replicas have been in sync, and the preferred replicas have been leaders, for a while."""
        self._cluster.start_missing()
        wait_for(self._is_in_sync, "all replicas are in sync")
        wait_for(self._prefers, "the preferred replicas lead")
        time.sleep(STEADY_SECONDS)

    def _partitions(self) -> list[Any]:
        topic = self._admin.list_topics(REPLICATED, timeout=10).topics[REPLICATED]
        return list(topic.partitions.values())

    def _is_in_sync(self) -> bool:
        with contextlib.suppress(KafkaException):
            return all(len(partition.isrs) == BROKERS for partition in self._partitions())
        return False

    def _prefers(self) -> bool:
        partitions = [TopicPartition(REPLICATED, index) for index in range(BROKERS)]
        with contextlib.suppress(KafkaException):
            self._admin.elect_leaders(ElectionType.PREFERRED, partitions).result(30)
            return {partition.leader for partition in self._partitions()} == set(range(1, BROKERS + 1))
        return False

    def _controller(self) -> int:
        return wait_for(lambda: max(0, self._cluster.controller()), "a controller is active")

    def _leader(self) -> int:
        """Return a broker that is not the active controller; every broker leads a partition."""
        return self._controller() % BROKERS + 1

    def _measured(self, topic: str, partitions: int, kill: Callable[[], None]) -> float:
        writer = Writer(self._cluster.bootstrap, topic, partitions)
        with writer.running():
            writer.await_progress(time.monotonic())
            time.sleep(STEADY_SECONDS)
            began = time.monotonic()
            kill()
            writer.await_progress(time.monotonic())
            time.sleep(AFTERMATH_SECONDS)
            writer.await_progress(time.monotonic())
            gap = writer.longest_gap(began, time.monotonic())
        assert not writer.failures, writer.failures[0]
        return gap

    def _kill_leader(self) -> float:
        victim = self._leader()
        return self._measured(REPLICATED, BROKERS, lambda: self._cluster.kill(victim))

    def _kill_controller(self) -> float:
        victim = self._controller()
        return self._measured(REPLICATED, BROKERS, lambda: self._cluster.kill(victim))

    def _kill_both(self) -> float:
        leader, controller = self._leader(), self._controller()

        def kill() -> None:
            self._cluster.kill(leader)
            self._cluster.start(leader)
            time.sleep(SECOND_KILL_SECONDS)
            self._cluster.kill(controller)

        return self._measured(REPLICATED, BROKERS, kill)

    def _restart(self) -> float:
        def restart() -> None:
            self._cluster.kill(self._lone_broker)
            self._cluster.start(self._lone_broker)

        return self._measured(LONE, 1, restart)


def wait_for(condition: Callable[[], T], what: str) -> T:
    deadline = time.monotonic() + RECOVERY_SECONDS_MAX
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {RECOVERY_SECONDS_MAX:.0f} s: {what}")
        time.sleep(0.02)
    return value


def measure(kind: BrokerKind, directory: Path, rounds: int, scenarios: list[str]) -> dict[str, list[float]]:
    gaps: dict[str, list[float]] = {name: [] for name in scenarios}
    with KillableCluster(kind, directory).started() as cluster:
        failover = Failover(cluster)
        failover.prepare()
        for number in range(1, rounds + 1):
            for name in scenarios:
                failover.recover()
                gaps[name].append(failover.scenarios[name]())
                print(f"{kind.name}, round {number}, {name}: {gaps[name][-1]:.2f} s", flush=True)
    return gaps


def table(results: Mapping[str, Mapping[str, list[float]]]) -> str:
    heads = [f"{name} {what}" for name in results for what in ("median s", "worst s")]
    lines = ["| killed | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for scenario in next(iter(results.values())):
        figures = [
            f"{figure:.2f}"
            for gaps in results.values()
            for figure in (statistics.median(gaps[scenario]), max(gaps[scenario]))
        ]
        lines.append(f"| {scenario} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


def main() -> None:
    names = ["leader", "controller", "both in a row", "restart"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="two rounds, to check that it works")
    parser.add_argument("--scenarios", nargs="+", choices=names, default=names)
    parser.add_argument("--no-kafka", action="store_true", help="SSKafka alone")
    parser.add_argument("--dir", type=Path, help="directory for the brokers, which is kept (default: a temporary one)")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds = 2 if options.quick else options.rounds
    kinds = [sskafka_kind()]
    if not options.no_kafka:
        kinds.append(apache_kafka_kind(resolve_kafka_libs()))
    results = {}
    with tempfile.TemporaryDirectory(prefix="failover-") as directory:
        for kind in kinds:
            home = (options.dir or Path(directory)) / kind.name.replace(" ", "-").lower()
            home.mkdir(parents=True)
            results[kind.name] = measure(kind, home, rounds, options.scenarios)
    text = table(results)
    print(text)
    if options.markdown is not None:
        options.markdown.write_text(text + "\n")
    if options.json is not None:
        facts = describe(f"{rounds} rounds", "python -m benchmarks.failover")
        options.json.write_text(json.dumps({**facts, "seconds": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
