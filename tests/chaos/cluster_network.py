"""A cluster whose brokers stand in network namespaces of their own, joined by one that forwards between them.

    broker 1 ── 10.213.1.0/24 ──┐
    broker 2 ── 10.213.2.0/24 ──┼── hub ── 10.213.0.0/24 ── the tests
    broker 3 ── 10.213.3.0/24 ──┘

A cut makes the hub drop packets of one direction without a word, as a broken network does. The tests, with the clients
that they start, are node 0. It needs root, or the user namespace of `unshare -Urn`.
"""

import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

from cluster_processes import ClusterProcesses

NET = "10.213"
TESTS = 0
PORT = 9092
STOP_TIMEOUT_S = 40


class Network:
    """Namespaces for brokers 1 to `count`; `close` removes them."""

    def __init__(self, count: int, net: str = NET) -> None:
        self._net = net
        self._prefix = f"sskafka-{os.getpid()}"
        self._link = f"ssk{os.getpid() % 10_000_000}"
        self._node_ids = range(1, count + 1)
        self._cuts: set[tuple[int, int]] = set()
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def namespace(self, node_id: int) -> str:
        return f"{self._prefix}-{node_id}"

    def host(self, node_id: int) -> str:
        return f"{self._net}.{node_id}.2"

    def cut(self, senders: Iterable[int], receivers: Iterable[int]) -> None:
        """Nothing that `senders` send arrives at `receivers`."""
        for pair in set(product(senders, receivers)) - self._cuts:
            self._rule("add", *pair)
            self._cuts.add(pair)

    def split(self, *groups: Iterable[int]) -> None:
        """Brokers of different groups cannot hear each other; the tests still reach all."""
        sides = [tuple(group) for group in groups]
        for side, other in product(sides, sides):
            if side != other:
                self.cut(side, other)

    def heal(self, node_id: int | None = None) -> None:
        """Mend all cuts, or those from and to one node."""
        for pair in [pair for pair in self._cuts if node_id is None or node_id in pair]:
            self._rule("del", *pair)
            self._cuts.discard(pair)

    def close(self) -> None:
        subprocess.run(["ip", "link", "del", self._link], capture_output=True, check=False)
        for name in (*(self.namespace(node_id) for node_id in self._node_ids), self._hub):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    @property
    def _hub(self) -> str:
        return f"{self._prefix}-hub"

    def _build(self) -> None:
        ip("netns", "add", self._hub)
        ip("netns", "exec", self._hub, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        ip("link", "add", self._link, "type", "veth", "peer", "name", "tests", "netns", self._hub)
        ip("addr", "add", f"{self._net}.0.2/24", "dev", self._link)
        ip("link", "set", self._link, "up")
        ip("-n", self._hub, "addr", "add", f"{self._net}.0.1/24", "dev", "tests")
        ip("-n", self._hub, "link", "set", "tests", "up")
        ip("route", "add", f"{self._net}.0.0/16", "via", f"{self._net}.0.1")
        for node_id in self._node_ids:
            self._add_broker(node_id)

    def _add_broker(self, node_id: int) -> None:
        name, link = self.namespace(node_id), f"broker{node_id}"
        ip("netns", "add", name)
        ip("link", "add", link, "netns", self._hub, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", self._hub, "addr", "add", f"{self._net}.{node_id}.1/24", "dev", link)
        ip("-n", self._hub, "link", "set", link, "up")
        ip("-n", name, "addr", "add", f"{self.host(node_id)}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "route", "add", "default", "via", f"{self._net}.{node_id}.1")

    def _rule(self, verb: str, sender: int, receiver: int) -> None:
        link = "tests" if sender == TESTS else f"broker{sender}"
        ip("-n", self._hub, "rule", verb, "iif", link, "to", self.host(receiver), "blackhole")


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


class NetworkedCluster(ClusterProcesses):
    """Started broker by broker, each in its namespace."""

    def __init__(self, directory: Path, network: Network, count: int, settings: Mapping[str, object]) -> None:
        super().__init__(directory, count, settings)
        self.network = network
        self.bootstrap_servers = ",".join(f"{network.host(node_id)}:{PORT}" for node_id in self.node_ids)

    def wrapper(self, node_id: int) -> Sequence[str]:
        return ("ip", "netns", "exec", self.network.namespace(node_id))

    def start(self, *options: str) -> "NetworkedCluster":
        assert not options
        began = time.monotonic()
        for node_id in self.node_ids:
            self._write_properties(node_id)
            self.start_broker(node_id, wait=False)
        self.wait_for_brokers(self.node_ids)
        self.start_seconds = time.monotonic() - began
        return self

    def stop(self, number: int = 15) -> int:
        for process in self._restarted.values():
            process.send_signal(number)
        codes = [process.wait(STOP_TIMEOUT_S) for process in self._restarted.values()]
        self._restarted.clear()
        return max(codes)

    def _write_properties(self, node_id: int) -> None:
        home = self.home(node_id)
        home.mkdir(parents=True, exist_ok=True)
        stated = {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "cluster.id": "MkU3OEVBNTcwNTJENDM2Qk",
            "listeners": f"PLAINTEXT://{self.network.host(node_id)}:{PORT}",
            "controller.quorum.voters": ",".join(f"{node}@{self.network.host(node)}:{PORT}" for node in self.node_ids),
            "log.dirs": home / "data",
            "metadata.log.dir": home / "metadata",
            **self.settings,
        }
        text = "".join(f"{key}={value}\n" for key, value in stated.items())
        (home / "server.properties").write_text(text)
