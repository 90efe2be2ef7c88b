"""A cluster of several brokers of one kind. Broker 1 leads every partition, the others follow.

All brokers are voters of the metadata quorum, each with its own controller listener, as Apache Kafka requires.
"""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.brokers import (
    HOST,
    Broker,
    BrokerKind,
    broker_process,
    free_ports,
    new_cluster_id,
    server_properties,
)
from benchmarks.probe import NotReadyError, Startup, wait_until_ready


class ClusterKind(BrokerKind):
    def __init__(self, kind: BrokerKind, count: int) -> None:
        super().__init__(kind.name, kind.command, kind.prepare)
        self._node_ids = range(1, count + 1)

    @contextlib.contextmanager
    def running(self, directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
        """Run the cluster; it is ready when every broker answers and knows all the others."""
        ports = free_ports(len(self._node_ids))
        files = self._write_properties(directory, ports, settings or {})
        with contextlib.ExitStack() as stack:
            began_at = time.monotonic()
            started = [
                stack.enter_context(broker_process(self.command(file), file.with_name("broker.log")))[0]
                for file in files
            ]
            stack.callback(_kill, started)
            startups = [
                self._wait(port, began_at, file, lambda: all(process.poll() is None for process in started))
                for port, file in zip(ports, files, strict=True)
            ]
            slowest = max(startups, key=lambda one: one.ready_seconds)
            yield Broker(
                self.name,
                HOST,
                ports[0],
                started[0].pid,
                slowest,
                files[0].with_name("data"),
                tuple(process.pid for process in started[1:]),
                tuple(self._node_ids),
            )

    def _write_properties(self, directory: Path, ports: list[int], settings: Mapping[str, str]) -> list[Path]:
        controller_ports = free_ports(len(self._node_ids))
        pairs = zip(self._node_ids, controller_ports, strict=True)
        voters = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in pairs)
        cluster_id = new_cluster_id()
        files = []
        for node_id, port, controller_port in zip(self._node_ids, ports, controller_ports, strict=True):
            file = directory / f"broker-{node_id}" / "server.properties"
            file.parent.mkdir(parents=True)
            data = file.with_name("data")
            file.write_text(server_properties(data, port, controller_port, settings, node_id=node_id, voters=voters))
            self.prepare(file, cluster_id)
            files.append(file)
        return files

    def _wait(self, port: int, began_at: float, file: Path, alive: Callable[[], bool]) -> Startup:
        try:
            return wait_until_ready(HOST, port, began_at, alive, brokers=len(self._node_ids))
        except NotReadyError as error:
            log = file.with_name("broker.log").read_text()[-2000:]
            raise NotReadyError(f"{self.name}, {file.parent.name}: {error}\n{log}") from error


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill brokers whose directories nobody reads again: Apache Kafka would wait a minute for the others."""
    for process in processes:
        process.kill()
