"""A cluster as users run it: `sskafka cluster up` on free ports, and single brokers killed, paused and started again.

Every process is known by its pid file or was started here; `close` leaves none behind.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from waiting import wait_until
from wire_connection import Connection

from sskafka.model.properties import parse_properties
from sskafka.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest
from sskafka.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from sskafka.wire.messages.elect_leaders import ElectLeadersRequest
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
STOP_TIMEOUT_S = 40


class PartitionState(NamedTuple):
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


class ClusterProcesses:
    door_options: Sequence[str] = ("--no-http", "--no-adr")
    """HTTP and ADR servers take time and ports, so only tests of such a server start it."""
    ready_timeout_s = 40
    environment: Mapping[str, str] = {}
    """What brokers are told beside the environment of the tests."""

    def __init__(self, directory: Path, count: int = 3, settings: Mapping[str, object] | None = None) -> None:
        self.directory = directory
        self.node_ids = list(range(1, count + 1))
        self.settings = {"default.replication.factor": min(3, count), **(settings or {})}
        self.bootstrap = ""
        self.start_seconds = 0.0
        self._parent: subprocess.Popen[str] | None = None
        self._restarted: dict[int, subprocess.Popen[bytes]] = {}

    # -- the whole cluster

    def start(self, *options: str) -> "ClusterProcesses":
        """Returns when the command says that the cluster is ready."""
        began = time.monotonic()
        self._parent = self.launch(*options)
        line = self._ready_line(self._parent)
        assert line.startswith("READY bootstrap="), f"expected a READY line, got {line!r}\n{self.logs()}"
        self.start_seconds = time.monotonic() - began
        self.bootstrap = line.split("=", 1)[1].split()[0]
        return self

    def launch(self, *options: str) -> "subprocess.Popen[str]":
        """Starts the command and waits for nothing. Its talk goes to a file."""
        self.directory.mkdir(parents=True, exist_ok=True)
        ports = () if self.bootstrap else ("--kafka-port", "0", *self.door_options)
        sets = [word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")]
        count = str(len(self.node_ids))
        with (self.directory / "up.log").open("ab") as talk:
            return subprocess.Popen(
                [SSKAFKA, "cluster", "up", "-n", count, "--dir", str(self.directory), *ports, *sets, *options],
                stdout=subprocess.PIPE,
                stderr=talk,
                text=True,
                env=os.environ | self.environment,
            )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stops the command, and brokers that were started again by themselves: the highest exit code.

        A command whose own brokers have all died has ended by itself, which is no failure to stop.
        """
        assert self._parent is not None, "the cluster was not started"
        parents = [self._parent] if self._parent.poll() is None else []
        for parent in parents:
            parent.send_signal(number)
        for process in self._restarted.values():
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(STOP_TIMEOUT_S) for process in (*parents, *self._restarted.values())]
        self._restarted.clear()
        self._close_parent()
        return max(codes)

    def restart(self) -> "ClusterProcesses":
        self.stop()
        return self.start()

    def close(self) -> None:
        """Whatever state it is in, leave no process behind."""
        pids = {node_id: self._pid_in_file(node_id) for node_id in self.node_ids}
        for process in self._restarted.values():
            process.kill()
            process.wait()
        if self._parent is not None:
            for node_id, pid in pids.items():
                if pid is not None and node_id not in self._restarted and _is_broker(pid, self.directory):
                    os.kill(pid, signal.SIGKILL)
            self._parent.kill()
            self._parent.wait()
            self._close_parent()

    @property
    def up_log(self) -> str:
        """What the command said on stderr."""
        return (self.directory / "up.log").read_text(errors="replace")

    def logs(self) -> str:
        files = [self.directory / "up.log", *sorted(self.directory.glob("broker-*/broker.log"))]
        return "\n".join(f"==> {file} <==\n{file.read_text(errors='replace')}" for file in files if file.exists())

    def _close_parent(self) -> None:
        if self._parent is not None and self._parent.stdout is not None:
            self._parent.stdout.close()
        self._parent = None

    def _ready_line(self, process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            is_ready = selector.select(self.ready_timeout_s)
            assert is_ready, f"no READY line within {self.ready_timeout_s} s\n{self.logs()}"
        return process.stdout.readline()

    # -- single brokers

    def home(self, node_id: int) -> Path:
        return self.directory / f"broker-{node_id}"

    def pid(self, node_id: int) -> int:
        pid = self._pid_in_file(node_id)
        assert pid is not None, f"broker {node_id} does not run"
        return pid

    def is_running(self, node_id: int) -> bool:
        pid = self._pid_in_file(node_id)
        return pid is not None and _is_broker(pid, self.directory)

    def address(self, node_id: int) -> str:
        properties = parse_properties((self.home(node_id) / "server.properties").read_text())
        return properties["listeners"].split("://", 1)[1]

    def send(self, node_id: int, number: signal.Signals) -> None:
        os.kill(self.pid(node_id), number)

    def kill(self, *node_ids: int) -> None:
        """Ends brokers in the middle of whatever they do."""
        for node_id in node_ids:
            self.send(node_id, signal.SIGKILL)
        for node_id in node_ids:
            wait_until(lambda node=node_id: not self.is_running(node), f"broker {node_id} is gone")
            self._reap(node_id)

    def stop_broker(self, node_id: int) -> None:
        self.send(node_id, signal.SIGTERM)
        wait_until(lambda: not self.is_running(node_id), f"broker {node_id} has stopped", STOP_TIMEOUT_S)
        self._reap(node_id)

    def start_broker(self, node_id: int, *, wait: bool = True) -> None:
        """Starts one broker from its own file, as a user would; returns when the others see it again."""
        home = self.home(node_id)
        self._reap(node_id)  # it may have been killed by somebody else
        with (home / "broker.log").open("ab") as log:
            self._restarted[node_id] = subprocess.Popen(
                [*self.wrapper(node_id), SSKAFKA, "start", str(home / "server.properties")],
                stdout=log,
                stderr=log,
                env=os.environ | self.environment,
            )
        if wait:
            self.wait_for_brokers(sorted({node_id, *self.running()}))

    def wrapper(self, node_id: int) -> Sequence[str]:
        """A command that runs the broker's command behind it."""
        return ()

    def running(self) -> list[int]:
        return [node_id for node_id in self.node_ids if self.is_running(node_id)]

    def _reap(self, node_id: int) -> None:
        process = self._restarted.pop(node_id, None)
        if process is not None:
            process.wait()

    def _pid_in_file(self, node_id: int) -> int | None:
        try:
            return int((self.home(node_id) / "broker.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    # -- what brokers say

    def ask(self, request: Any, version: int, at: int | None = None) -> Any:
        """The answer of one broker: the given one, or any that runs."""
        for node_id in [at] if at is not None else self.running():
            try:
                with Connection(self.address(node_id)) as connection:
                    return connection.call(request, version)
            except (OSError, AssertionError):
                if at is not None:
                    raise
        raise AssertionError("no broker answers")

    def controller(self, at: int | None = None) -> int:
        return int(self.ask(DescribeClusterRequest(), 0, at).controller_id)

    def quorum(self, at: int | None = None) -> Any:
        topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData()])
        return self.ask(DescribeQuorumRequest(topics=[topic]), 2, at).topics[0].partitions[0]

    def live_brokers(self, at: int | None = None) -> set[int]:
        return {broker.broker_id for broker in self.ask(DescribeClusterRequest(), 0, at).brokers}

    def partitions(self, topic: str, at: int | None = None) -> dict[int, PartitionState]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (answer,) = self.ask(request, 12, at).topics
        return {
            item.partition_index: PartitionState(
                item.leader_id, item.leader_epoch, list(item.replica_nodes), list(item.isr_nodes)
            )
            for item in answer.partitions
        }

    def create_topic(self, name: str, partitions: int = 3, replicas: int = 3, **configs: object) -> None:
        """Returns when every running broker knows the topic and each partition has its whole ISR."""
        settings = [CreatableTopicConfig(key.replace("_", "."), str(value)) for key, value in configs.items()]
        wanted = CreatableTopic(name, partitions, replicas, configs=settings)
        (result,) = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=15_000), 7, self.controller()).topics
        assert result.error_code == 0, result
        for node_id in self.running():
            wait_until(lambda at=node_id: self._is_whole(name, partitions, at), f"broker {node_id} knows {name}")

    def elect_preferred_leaders(self) -> None:
        """Of all partitions, as far as they are in sync."""
        answer = self.ask(ElectLeadersRequest(topic_partitions=None, timeout_ms=15_000), 2, self.controller())
        assert answer.error_code == 0, answer

    def _is_whole(self, topic: str, count: int, at: int) -> bool:
        states = self.partitions(topic, at)
        return len(states) == count and all(sorted(item.isr) == sorted(item.replicas) for item in states.values())

    def wait_for_brokers(self, node_ids: Sequence[int], timeout_s: float = 30) -> None:
        """Until each of these brokers answers, knows a controller and sees the others alive, and no more."""
        for node_id in node_ids:
            wait_until(lambda at=node_id: self._sees(at, node_ids), f"broker {node_id} sees {node_ids}", timeout_s)

    def _sees(self, node_id: int, expected: Sequence[int]) -> bool:
        try:
            answer = self.ask(DescribeClusterRequest(), 0, node_id)
        except (OSError, AssertionError):
            return False
        return answer.controller_id >= 0 and {item.broker_id for item in answer.brokers} == set(expected)

    def wait_for_isr(self, topic: str, node_ids: Sequence[int], timeout_s: float = 40) -> None:
        """Until these brokers are the ISR of every partition."""
        wait_until(
            lambda: all(sorted(item.isr) == sorted(node_ids) for item in self.partitions(topic).values()),
            f"{list(node_ids)} are the ISR of {topic}",
            timeout_s,
        )

    def wait_for_new_leader(self, topic: str, partition: int, old: int, timeout_s: float = 15) -> int:
        def new_leader() -> int | None:
            leader = self.partitions(topic)[partition].leader
            return leader if leader not in {-1, old} else None

        return wait_until(new_leader, f"{topic}-{partition} has a leader other than {old}", timeout_s)


def _is_broker(pid: int, directory: Path) -> bool:
    """Whether the process lives and is one of this cluster: pid files outlive processes, and pids are used again."""
    try:
        status, command = Path(f"/proc/{pid}/stat").read_text(), Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z" and str(directory) in command


StartCluster = Callable[..., ClusterProcesses]
"""What the fixture `start_cluster` is: a number of brokers and settings in, a running cluster out."""
