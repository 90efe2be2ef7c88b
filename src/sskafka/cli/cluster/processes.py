"""The processes of a local cluster: each broker is a child process that inherits sockets bound here.

Binding here finds every port in use before anything runs, and a port chosen by the system cannot be lost to another
process. The children have their own process groups, so that Ctrl+C reaches them once, through their parent.
"""

import asyncio
import errno
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sskafka.cli.broker_child import BrokerChild
from sskafka.cli.cluster.homes import BrokerHome
from sskafka.cli.cluster.ports import HOST, Ports, Server
from sskafka.cli.failures import CommandError
from sskafka.model.listeners import Endpoint
from sskafka.servers.kafka.sockets import PortTakenError, bind

_LOG_TAIL_LINES = 8


BoundSockets = dict[Server, socket.socket]


@contextmanager
def bound_sockets(homes: Sequence[BrokerHome], ports: Sequence[Ports]) -> Iterator[list[BoundSockets]]:
    """Yield each broker's sockets and close them here afterwards: an open socket would keep a dead broker's port."""
    with ExitStack() as stack:
        sockets = [
            {server: stack.enter_context(_bind(home, server, port)) for server, port in own_ports.items()}
            for home, own_ports in zip(homes, ports, strict=True)
        ]
        yield sockets


def _bind(home: BrokerHome, server: Server, port: int) -> socket.socket:
    try:
        return bind(Endpoint(server.name, HOST, port))
    except PortTakenError as error:
        raise CommandError(
            f"port {port}, for broker {home.node_id}, is in use by another program{_suspect(home)}",
            f"{server.option} N starts at another port, {server.option} 0 uses any free ports",
        ) from error
    except OverflowError as error:
        raise CommandError(f"invalid port {port} for broker {home.node_id}", f"use a lower {server.option}") from error


def _suspect(home: BrokerHome) -> str:
    try:
        return f"; perhaps this broker is running already, as process {int(home.pid_file.read_text())}"
    except (FileNotFoundError, ValueError):
        return ""


class BrokerProcess(BrokerChild):
    """A broker of the cluster, whose output goes to the log file in its home."""

    def __init__(self, home: BrokerHome, process: asyncio.subprocess.Process) -> None:
        super().__init__(home.node_id, process)
        self.home = home

    @classmethod
    async def start(cls, home: BrokerHome, sockets: BoundSockets) -> "BrokerProcess":
        inherit = [
            word for server, bound in sockets.items() for word in ("--inherit", f"{server.name}={bound.fileno()}")
        ]
        with home.log_file.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "sskafka", "start", str(home.properties_file), *inherit),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[bound.fileno() for bound in sockets.values()],
                process_group=0,
            )
        return cls(home, process)


def last_lines(log_file: Path) -> str:
    """Return the last lines of a broker's log, indented."""
    try:
        lines = log_file.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        lines = []
    return "".join(f"\n  | {line}" for line in lines)
