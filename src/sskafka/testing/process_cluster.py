"""A cluster for tests: brokers in processes of their own, which a test kills, pauses and starts again.

    with ProcessCluster(3) as cluster:
        cluster.create_topic("orders", replication_factor=3)
        cluster.produce("orders", "3 apples")
        cluster.kill(cluster.leader("orders"))
        assert cluster.consume("orders", 1)

`sskafka cluster up` starts the brokers, on free ports. Each broker writes its process id to a file, through which it is
killed or paused; `close` ends all of them, whatever state they are in.
"""

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from sskafka.client.admin import Admin
from sskafka.client.loop_thread import run_once
from sskafka.client.shortcuts import ClientShortcuts
from sskafka.embedded import FAST_GROUPS
from sskafka.model.properties import parse_properties

STOP_TIMEOUT_S = 40.0
_COMMAND = (sys.executable, "-m", "sskafka")


class ProcessCluster(ClientShortcuts):
    """`settings` have Kafka's names and apply to every broker. Node ids count from 1.

    `secure`: TLS, SASL and ACLs; clients log in as the super user `admin`."""

    server_options: Sequence[str] = ("--no-http", "--no-adr")
    """HTTP and ADR servers take time and ports."""
    ready_timeout_s = 40.0
    environment: Mapping[str, str] = {}
    """Variables of the brokers, in addition to the environment of the test."""

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, object] | None = None,
        *,
        directory: str | Path | None = None,
        secure: bool = False,
    ) -> None:
        self.node_ids = list(range(1, brokers + 1))
        self.settings = {"default.replication.factor": min(3, brokers), **FAST_GROUPS, **(settings or {})}
        self.secure = secure
        self.bootstrap_servers = ""
        self._cleanup = ExitStack()
        if directory is None:
            directory = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="sskafka-cluster-"))
        self.directory = Path(directory)
        self._parent: subprocess.Popen[str] | None = None
        self._restarted: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def client_properties(self) -> dict[str, str]:
        properties = {"bootstrap.servers": self.bootstrap_servers}
        if self.secure:
            properties |= parse_properties((self.directory / "client.properties").read_text())
        return properties

    # -- the whole cluster

    def start(self, *options: str) -> Self:
        """Return when all brokers are ready; `options` are added to those of `sskafka cluster up`."""
        self._parent = self.launch(*options)
        line = self._ready_line(self._parent)
        if not line.startswith("READY bootstrap="):
            raise RuntimeError(f"the cluster did not start: it printed {line!r}\n{self.logs()}")
        self.bootstrap_servers = line.split("=", 1)[1].split()[0]
        return self

    def launch(self, *options: str) -> "subprocess.Popen[str]":
        """Run `sskafka cluster up` and return without waiting. Its messages go to the file `up.log`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        first = () if self.bootstrap_servers else ("--kafka-port", "0", *self.server_options)
        secure = ("--secure",) if self.secure else ()
        sets = [word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")]
        count = str(len(self.node_ids))
        with (self.directory / "up.log").open("ab") as messages:
            return subprocess.Popen(
                [
                    *_COMMAND,
                    "cluster",
                    "up",
                    "-n",
                    count,
                    "--dir",
                    str(self.directory),
                    *first,
                    *secure,
                    *sets,
                    *options,
                ],
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                env=os.environ | self.environment,
            )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop all brokers and return the highest exit code of the processes that were still running."""
        if self._parent is None:
            raise RuntimeError("the cluster was not started")
        parents = [self._parent] if self._parent.poll() is None else []
        for parent in parents:
            parent.send_signal(number)
        for process in self._restarted.values():
            process.send_signal(signal.SIGTERM)
        codes = [parent.wait(STOP_TIMEOUT_S) for parent in parents]
        codes += [process.wait(STOP_TIMEOUT_S) for process in self._restarted.values()]
        self._restarted.clear()
        self._close_parent()
        return max(codes)

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def close(self) -> None:
        """Kill every process of the cluster, and remove the directory if it is a temporary one."""
        pids = {node_id: self._pid_in_file(node_id) for node_id in self.node_ids}
        for process in self._restarted.values():
            process.kill()
            process.wait()
        self._restarted.clear()
        if self._parent is not None:
            for pid in pids.values():
                if pid is not None and _is_broker(pid, self.directory):
                    os.kill(pid, signal.SIGKILL)
            self._parent.kill()
            self._parent.wait()
            self._close_parent()
        self._cleanup.close()

    def logs(self) -> str:
        """Return what the command and the brokers have logged."""
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
            if not selector.select(self.ready_timeout_s):
                raise TimeoutError(f"the cluster was not ready within {self.ready_timeout_s:g} s\n{self.logs()}")
        return process.stdout.readline()

    # -- single brokers

    def home(self, node_id: int) -> Path:
        return self.directory / f"broker-{node_id}"

    def pid(self, node_id: int) -> int:
        pid = self._pid_in_file(node_id)
        if pid is None:
            raise RuntimeError(f"broker {node_id} is not running")
        return pid

    def is_running(self, node_id: int) -> bool:
        pid = self._pid_in_file(node_id)
        return pid is not None and _is_broker(pid, self.directory)

    def running(self) -> list[int]:
        return [node_id for node_id in self.node_ids if self.is_running(node_id)]

    def send(self, node_id: int, number: signal.Signals) -> None:
        os.kill(self.pid(node_id), number)

    def kill(self, *node_ids: int) -> None:
        """End brokers with SIGKILL, in the middle of whatever they do."""
        for node_id in node_ids:
            self.send(node_id, signal.SIGKILL)
        for node_id in node_ids:
            self._wait_for_end(node_id)

    def pause(self, node_id: int) -> None:
        """Stop a broker with SIGSTOP: its connections stay open, and it answers nothing until `resume`."""
        self.send(node_id, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        self.send(node_id, signal.SIGCONT)

    def stop_broker(self, node_id: int) -> None:
        """Stop a broker cleanly: it hands its leaders over and flushes its logs."""
        self.send(node_id, signal.SIGTERM)
        self._wait_for_end(node_id)

    def start_broker(self, node_id: int, *, wait: bool = True) -> None:
        """Start one broker again; with `wait`, return when the cluster sees it."""
        home = self.home(node_id)
        self._reap(node_id)  # the broker may have been killed by somebody else
        with (home / "broker.log").open("ab") as log:
            self._restarted[node_id] = subprocess.Popen(
                [*self.wrapper(node_id), *_COMMAND, "start", str(home / "server.properties")],
                stdout=log,
                stderr=log,
                env=os.environ | self.environment,
            )
        if wait:
            self.wait_for_broker(node_id)

    def wrapper(self, node_id: int) -> Sequence[str]:
        """Return a command that runs the broker's command, such as `ip netns exec NAME`."""
        return ()

    def wait_for_broker(self, node_id: int) -> None:
        self._wait_until(lambda: node_id in self.live_brokers(), f"broker {node_id} is registered")

    # -- the state of the cluster

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the node id of the leader, or -1 if the partition has none."""
        return self.describe_partition(topic, partition).leader

    def in_sync_replicas(self, topic: str, partition: int = 0) -> list[int]:
        return sorted(self.describe_partition(topic, partition).isr)

    def wait_for_isr(self, topic: str, node_ids: Sequence[int], partition: int = 0) -> None:
        """Wait until exactly these brokers are the in-sync replicas of a partition."""
        wanted = sorted(node_ids)
        self._wait_until(lambda: self.in_sync_replicas(topic, partition) == wanted, f"{wanted} are in sync")

    def live_brokers(self) -> set[int]:
        return run_once(self._live_brokers())

    async def _live_brokers(self) -> set[int]:
        async with self._cluster() as cluster:
            return {broker.broker_id for broker in (await Admin(cluster).describe_cluster()).brokers}

    def _wait_until(self, condition: Callable[[], bool], what: str, timeout_s: float = STOP_TIMEOUT_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() >= deadline:
                raise TimeoutError(f"after {timeout_s:g} s it is not true that {what}\n{self.logs()}")
            time.sleep(0.02)

    def _wait_for_end(self, node_id: int) -> None:
        self._wait_until(lambda: not self.is_running(node_id), f"broker {node_id} has ended")
        self._reap(node_id)

    def _reap(self, node_id: int) -> None:
        process = self._restarted.pop(node_id, None)
        if process is not None:
            process.wait()

    def _pid_in_file(self, node_id: int) -> int | None:
        try:
            return int((self.home(node_id) / "broker.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None


def _is_broker(pid: int, directory: Path) -> bool:
    """Return whether the process runs and belongs to this cluster: a process id in a file may be in use again."""
    command = ["ps", "-ww", "-o", "stat=,command=", "-p", str(pid)]
    status, _, command_line = subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition(" ")
    return bool(status) and not status.startswith("Z") and str(directory) in command_line
