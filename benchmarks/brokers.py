"""Brokers under measurement: started here, or already running and known by address and pid.

Both kinds of broker get the same properties: one node that is broker and controller, log directories on the same file
system, flushing left to the operating system, everything else at its default.
"""

import base64
import compileall
import contextlib
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import sskafka
from benchmarks.apache_kafka import BROKER_HEAP, PERFORMANCE_OPTIONS, KafkaLibs, run_tool
from benchmarks.maven import UnavailableError
from benchmarks.probe import NotReadyError, Startup, wait_until_ready
from sskafka.broker.local_security import make_certificates, tls_settings
from sskafka.runtime.tls.authority import CA_CERTIFICATE

HOST = "127.0.0.1"
TLS_LISTENER = "benchmarks.tls.port"
"""Not a setting of brokers: the port of a listener with the protocol SSL."""
STOP_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class TlsAddress:
    """The listener of a broker with the protocol SSL, and what its clients trust."""

    port: int
    ca: Path


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that is ready; in a cluster, the broker that leads every measured partition."""

    name: str
    host: str
    port: int
    pid: int
    startup: Startup | None = None
    data: Path | None = None
    follower_pids: tuple[int, ...] = ()
    replicas: tuple[int, ...] = (1,)
    """Replicas of each partition, leader first."""
    tls: TlsAddress | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"


class BrokerKind:
    """Starts a kind of broker in an empty directory."""

    def __init__(self, name: str, command: Callable[[Path], list[str]], prepare: Callable[[Path, str], None]) -> None:
        """`prepare` formats the directories in a properties file for the cluster id."""
        self.name = name
        self.command = command
        self.prepare = prepare
        self.ready_seconds_max = 60.0

    @contextlib.contextmanager
    def running(self, directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
        """Run a broker on `directory/data`, which is formatted first unless it already contains a log directory."""
        directory.mkdir(parents=True, exist_ok=True)
        data, log = directory / "data", directory / "broker.log"
        port, controller_port = free_ports(2)
        properties = directory / "server.properties"
        properties.write_text(server_properties(data, port, controller_port, settings or {}))
        if not data.exists():
            self.prepare(properties, new_cluster_id())
        with broker_process(self.command(properties), log) as (process, started_at):
            try:
                startup = wait_until_ready(
                    HOST, port, started_at, lambda: process.poll() is None, self.ready_seconds_max
                )
            except NotReadyError as error:
                raise NotReadyError(f"{self.name}: {error}\n{log.read_text()[-2000:]}") from error
            yield Broker(self.name, HOST, port, process.pid, startup, data)


class TlsKind(BrokerKind):
    """The same broker with a second listener, for the protocol SSL. Topics are created over the first one."""

    def __init__(self, kind: BrokerKind) -> None:
        super().__init__(kind.name, kind.command, kind.prepare)

    @contextlib.contextmanager
    def running(self, directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
        certificates = directory / "certificates"
        certificates.mkdir(parents=True, exist_ok=True)
        key_store = make_certificates(certificates, "broker")
        (port,) = free_ports(1)
        secured = {**tls_settings(key_store), TLS_LISTENER: str(port), **(settings or {})}
        with super().running(directory, secured) as broker:
            yield replace(broker, tls=TlsAddress(port, certificates / CA_CERTIFICATE))


def sskafka_kind() -> BrokerKind:
    program = Path(sys.executable).with_name("sskafka")
    source = Path(sskafka.__file__).parent
    return BrokerKind(
        "SSKafka", lambda properties: [str(program), "start", str(properties)], lambda *_: write_bytecode(source)
    )


def checkout_kind(checkout: Path) -> BrokerKind:
    """Return SSKafka of another checkout, run by this environment's interpreter and libraries."""
    source = checkout / "src"
    if not (source / "sskafka").is_dir():
        raise UnavailableError(f"{checkout} is no checkout of SSKafka: it has no src/sskafka")
    program = ["env", f"PYTHONPATH={source}", sys.executable, "-P", "-m", "sskafka", "start"]
    return BrokerKind(
        "SSKafka before",
        lambda properties: [*program, str(properties)],
        lambda *_: write_bytecode(source / "sskafka"),
    )


def write_bytecode(source: Path) -> None:
    """Compile the sources to bytecode, as an installation does.

    Where Python is told not to write bytecode (PYTHONDONTWRITEBYTECODE), a start from a checkout would otherwise
    compile every module and take twice as long."""
    compileall.compile_dir(source, quiet=1)


def apache_kafka_kind(libs: KafkaLibs) -> BrokerKind:
    def command(properties: Path) -> list[str]:
        return libs.java("kafka.Kafka", str(properties), options=(*BROKER_HEAP, *PERFORMANCE_OPTIONS))

    return BrokerKind("Apache Kafka", command, partial(format_storage, libs))


def new_cluster_id() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=").replace("-", "A")


def format_storage(libs: KafkaLibs, properties: Path, cluster_id: str) -> None:
    """Format the directory with Kafka's tool: Kafka rejects a directory without a cluster id."""
    done = run_tool(libs, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties))
    if done.returncode != 0:
        raise NotReadyError(f"formatting failed: {done.stdout}{done.stderr}")


def server_properties(
    data: Path, port: int, controller_port: int, extra: Mapping[str, str], *, node_id: int = 1, voters: str = ""
) -> str:
    extra = dict(extra)
    tls_port = extra.pop(TLS_LISTENER, "")
    tls = f",SSL://{HOST}:{tls_port}" if tls_port else ""
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{HOST}:{port}{tls},CONTROLLER://{HOST}:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters or f"{node_id}@{HOST}:{controller_port}",
        "log.dirs": str(data),
        "num.partitions": "1",
        # Delete the files of deleted topics at once, so that this does not disturb a later measurement.
        "log.segment.delete.delay.ms": "100",
        "log.initial.task.delay.ms": "500",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        **extra,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def free_ports(count: int) -> list[int]:
    """Return ports that were free just now. Port 0 does not work: Kafka's configuration must contain the ports."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def broker_process(command: list[str], log: Path) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """Run a child process; end it with SIGTERM, and with SIGKILL if it does not exit."""
    with log.open("wb") as output:
        started_at = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process, started_at
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
