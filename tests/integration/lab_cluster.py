"""The lab's cluster: five brokers of `sskafka cluster up -n 5 --lab`, spoken to by HTTP and by the lab's scripts."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from cluster_processes import ClusterProcesses
from waiting import wait_until

from sskafka.cli.log.segment import text_lines
from sskafka.model.properties import parse_properties

CLIENT = Path(__file__).resolve().parents[2] / "client"
BROKER_COUNT = 5
REPLICAS = [str(number) for number in range(1, BROKER_COUNT + 1)]
ANSWER_TIMEOUT_S = 40
SCRIPT_TIMEOUT_S = 40
QUICK_SESSIONS = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
"""Partitions of a dead broker have new leaders soon; elections of the quorum take their usual time."""


class Answer(NamedTuple):
    status: int
    body: Any


class LabCluster(ClusterProcesses):
    server_options = ("--http-port", "0", "--no-adr")
    ready_timeout_s = 90  # ten processes start, five of them with FastAPI

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, BROKER_COUNT, settings)
        self.environment = environment or {}
        self._http = httpx.Client(timeout=ANSWER_TIMEOUT_S, trust_env=False)
        self._threads = ThreadPoolExecutor(4)

    def start(self, *options: str) -> "LabCluster":
        super().start("--lab", *options)
        return self

    def close(self) -> None:
        super().close()  # first: it ends the requests that threads may still wait for
        self._threads.shutdown()
        self._http.close()

    def kill(self, *node_ids: int) -> None:
        """Returns when their HTTP processes are gone too."""
        super().kill(*node_ids)
        for node_id in node_ids:
            wait_until(lambda at=node_id: self._refuses_http(at), f"the HTTP server of broker {node_id} is gone")

    def _refuses_http(self, node_id: int) -> bool:
        host, port = self.http_address(node_id).rsplit(":", 1)
        try:
            socket.create_connection((host, int(port))).close()
        except OSError as error:
            return isinstance(error, ConnectionRefusedError)
        return False

    @contextmanager
    def paused(self, node_ids: Sequence[int]) -> Iterator[None]:
        for node_id in node_ids:
            self.send(node_id, signal.SIGSTOP)
        try:
            yield
        finally:
            for node_id in node_ids:
                self.send(node_id, signal.SIGCONT)

    def others(self, *node_ids: int) -> list[int]:
        return [node_id for node_id in self.node_ids if node_id not in node_ids]

    def epoch(self) -> int:
        """Of the quorum."""
        return int(self.quorum().leader_epoch)

    # -- over HTTP

    def http_address(self, node_id: int) -> str:
        return parse_properties((self.home(node_id) / "server.properties").read_text())["http.listener"]

    def call(self, method: str, node_id: int, path: str, body: Any = None) -> Answer:
        response = self._http.request(method, f"http://{self.http_address(node_id)}{path}", json=body)
        return Answer(response.status_code, response.json() if response.content else None)

    def calling(self, method: str, node_id: int, path: str, body: Any = None) -> "Future[Answer]":
        """The same on a thread, for requests that are expected to wait."""
        return self._threads.submit(self.call, method, node_id, path, body)

    def answers_http(self, node_id: int) -> bool:
        try:
            return self.call("GET", node_id, "/healthcheck").status == 200
        except httpx.TransportError:
            return False

    def leader_known_to(self, node_id: int) -> int:
        if not self.answers_http(node_id):
            return -1
        leader: int = self.call("GET", node_id, "/healthcheck").body["leader_broker_id"]
        return leader

    def leader(self) -> int:
        """Once all that run agree on one of them."""

        def agreed() -> int | None:
            running = self.running()
            named = {self.leader_known_to(node_id) for node_id in running}
            return named.pop() if len(named) == 1 and named <= set(running) else None

        return wait_until(agreed, "all brokers name one leader", ANSWER_TIMEOUT_S)

    def follower(self) -> int:
        leader = self.leader()
        return next(node_id for node_id in self.running() if node_id != leader)

    def create(self, name: str, partitions: int = 1) -> None:
        answer = self.call("POST", self.leader(), "/admin/v1/topics", topic_body(name, partitions))
        assert answer == (201, {"topic_name": name, "partitions": partition_list(name, partitions)})

    def topic_names(self) -> list[str]:
        return [topic["topic_name"] for topic in self.call("GET", self.leader(), "/admin/v1/topics").body["topics"]]

    def produce(self, topic_partition: str, key: str, payload: str, acks: str = "all") -> Answer:
        return self.call("POST", self.leader(), "/data/v1/produce", record_body(topic_partition, key, payload, acks))

    def producing(self, topic_partition: str, payload: str, acks: str = "all") -> "Future[Answer]":
        return self._threads.submit(self.produce, topic_partition, "k", payload, acks)

    def consume(self, topic_partition: str, last_offset: int = -1, max_batch_size: int = 100) -> Answer:
        return self.call(
            "POST", self.leader(), "/data/v1/consume", consume_body(topic_partition, last_offset, max_batch_size)
        )

    def payloads(self, topic_partition: str) -> list[str]:
        answer = self.consume(topic_partition)
        assert answer.status == 200, answer
        return [record["payload"] for record in answer.body["records"]]

    # -- files

    def journal(self, node_id: int) -> list[str]:
        return (self.home(node_id) / "metadata" / "__cluster_metadata.log").read_text().splitlines()

    def quorum_state(self, node_id: int) -> dict[str, int]:
        state: dict[str, int] = json.loads((self.home(node_id) / "metadata" / "quorum-state").read_text())
        return state

    def partition_files(self, node_id: int, topic_partition: str, suffix: str) -> list[Path]:
        return sorted((self.home(node_id) / "data" / topic_partition).glob(f"*{suffix}"))

    def stored_lines(self, node_id: int, topic_partition: str) -> list[str]:
        """A broker's copy of a partition in the lab's words: offset, key, payload."""
        return [line for file in self.partition_files(node_id, topic_partition, ".log") for line in text_lines(file)]

    # -- scripts

    @property
    def broker_list(self) -> str:
        """As the scripts' -b takes it."""
        return self.broker_list_of(self.node_ids)

    def broker_list_of(self, node_ids: list[int]) -> str:
        return ",".join(f"{node_id}@{self.http_address(node_id)}" for node_id in node_ids)

    def script(self, name: str, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return run(script_command(name, *arguments, "-b", self.broker_list), stdin)


def topic_body(name: str, partitions: int) -> dict[str, Any]:
    return {"topic_name": name, "partition_count": partitions}


def partition_list(name: str, count: int) -> list[dict[str, Any]]:
    return [{"id": f"{name}-{number}", "replica_brokers": REPLICAS} for number in range(1, count + 1)]


def record_body(topic_partition: str, key: str, payload: str, acks: str = "all") -> dict[str, str]:
    return {"topic_partition": topic_partition, "key": key, "payload": payload, "acks": acks}


def consume_body(topic_partition: str, last_offset: int = -1, max_batch_size: int = 100) -> dict[str, Any]:
    return {"topic_partition": topic_partition, "last_offset": last_offset, "max_batch_size": max_batch_size}


def script_command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(CLIENT / f"{name}.py"), *arguments]


def run(
    command: list[str], stdin: str = "", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=SCRIPT_TIMEOUT_S, check=False, env=env
    )


@contextmanager
def running_lab(
    directory: Path, settings: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[LabCluster]:
    if "SSKAFKA_TEST_BOOTSTRAP" in os.environ:
        pytest.skip("needs brokers of its own")
    cluster = LabCluster(directory, settings, environment)
    try:
        yield cluster.start()
    finally:
        cluster.close()
        sys.stderr.write(cluster.logs())  # pytest shows it when a test has failed
