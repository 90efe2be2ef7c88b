"""`sskafka cluster up`: several brokers on this machine as one cluster, in the foreground.

When the cluster is ready, one line is printed to stdout: `READY bootstrap=HOST:PORT,... http=HOST:PORT,...`. A broker
that exits is reported and not restarted, so that users can observe failovers. SIGTERM and Ctrl+C stop all brokers
cleanly; a second signal kills the remaining ones.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sskafka.cli.cluster.homes import OWN_KEYS, LocalCluster, find_cluster, wanted_ports, write_settings
from sskafka.cli.cluster.ports import ADR, ANY_PORT, HOST, HTTP, KAFKA, SECURE_KAFKA, PortOption, Ports, kafka_server
from sskafka.cli.cluster.processes import BrokerProcess, bound_sockets, last_lines
from sskafka.cli.cluster.readiness import Member, until_ready
from sskafka.cli.failures import CommandError
from sskafka.cli.host.count import host_broker_count
from sskafka.cli.options import BrokersPerHostOption, SetOption
from sskafka.cli.output import talk
from sskafka.cli.stop_signals import StopSignals
from sskafka.cli.usage import key_values
from sskafka.client.connection import Address
from sskafka.model.host_brokers import is_first_of_machine

if TYPE_CHECKING:
    from sskafka.cli.cluster.secure import ClusterSecurity

DEFAULT_BROKERS = 3
DEFAULT_DIRECTORY = Path("sskafka-cluster")
_INTERRUPTED = 130


def up(
    brokers: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--brokers",
            min=1,
            help="Number of brokers (of machines, with --brokers-per-host). Default: 3, or the number that --dir has.",
            show_default=False,
        ),
    ] = None,
    directory: Annotated[
        Path, typer.Option("--dir", help="Data directory; an existing cluster is started again.")
    ] = DEFAULT_DIRECTORY,
    kafka_port: Annotated[
        int | None,
        typer.Option(
            "--kafka-port",
            min=0,
            help="Kafka port of broker 1; the others use the ports after it. 0: free ports. "
            "Default: 9092, or the ports used before.",
            show_default=False,
        ),
    ] = None,
    http_port: Annotated[
        int | None,
        typer.Option(
            "--http-port",
            min=0,
            help="HTTP port of broker 1; the others use the ports after it. 0: free ports. "
            "Default: 8001, or the ports used before.",
            show_default=False,
        ),
    ] = None,
    http: Annotated[bool, typer.Option("--http/--no-http", help="Whether brokers run an HTTP server.")] = True,
    adr_port: Annotated[
        int | None,
        typer.Option(
            "--adr-port",
            min=0,
            help="ADR-0011 port of broker 1; the others use the ports after it. 0: free ports, as with --kafka-port 0. "
            "Default: 9180, or the ports used before.",
            show_default=False,
        ),
    ] = None,
    adr: Annotated[bool, typer.Option("--adr/--no-adr", help="Whether brokers run an ADR-0011 server.")] = True,
    brokers_per_host: BrokersPerHostOption = None,
    overrides: SetOption = None,
    lab: Annotated[
        bool, typer.Option("--lab", help="Settings for the lab: directories counted from 1, lab API enabled.")
    ] = False,
    secure: Annotated[
        bool, typer.Option("--secure", help="TLS, SASL and ACLs, with a certificate authority and a user `admin`.")
    ] = False,
) -> None:
    """Start brokers on this machine as one cluster and run until they stop."""
    per_host = None if brokers_per_host is None else host_broker_count(brokers_per_host)
    cluster = find_cluster(directory, brokers, DEFAULT_BROKERS, per_host)
    security = _find_security(cluster, secure)
    if lab and security is not None:
        raise CommandError("the lab's API has no logins", "use --lab or --secure, not both")
    if adr_port is None and kafka_port == ANY_PORT:
        adr_port = ANY_PORT
    options = {
        KAFKA if security is None else SECURE_KAFKA: PortOption(kafka_port),
        HTTP: PortOption(http_port, is_open=http),
        ADR: PortOption(adr_port, is_open=adr and security is None),  # its clients cannot log in
    }
    ports = wanted_ports(cluster, options)
    settings = _settings_for_all(overrides)
    raise typer.Exit(asyncio.run(run_cluster(cluster, ports, settings, lab=lab, security=security)))


def _find_security(cluster: LocalCluster, secure: bool) -> "ClusterSecurity | None":
    is_secure = not cluster.is_new and cluster.homes[0].read_properties()["listeners"].startswith(SECURE_KAFKA.name)
    if not secure and not is_secure:
        return None
    from sskafka.cli.cluster.secure import find_security  # noqa: PLC0415  not for other clusters

    return find_security(cluster, is_wanted=secure)


def _settings_for_all(overrides: list[str] | None) -> dict[str, str]:
    settings = key_values(overrides, "--set")
    for key in settings.keys() & OWN_KEYS:
        raise typer.BadParameter(f"{key} differs between brokers and is set by this command", param_hint="--set")
    return settings


def _brokers(count: int) -> str:
    return "1 broker" if count == 1 else f"{count} brokers"


Workload = Callable[[Sequence[Member], "asyncio.Future[signal.Signals]"], Coroutine[Any, Any, None]]
"""Runs beside the brokers once they are ready. It must end after a signal; the brokers stop after it."""


async def print_ready_line(members: Sequence[Member], stopped: "asyncio.Future[signal.Signals]") -> None:
    print(_ready_line(members), flush=True)
    await asyncio.wait([stopped])


async def run_cluster(
    cluster: LocalCluster,
    ports: Sequence[Ports],
    settings: dict[str, str],
    *,
    lab: bool = False,
    workload: Workload = print_ready_line,
    security: "ClusterSecurity | None" = None,
) -> int:
    """Run the brokers until a signal arrives or the workload ends. Return the exit code."""
    supervisor = Supervisor(StopSignals(), security)
    try:
        with bound_sockets(cluster.homes, ports) as sockets_of_all:
            ports = [
                {server: bound.getsockname()[1] for server, bound in sockets.items()} for sockets in sockets_of_all
            ]
            for warning in write_settings(
                cluster, ports, settings, lab=lab, security_of=security.settings_of if security else None
            ):
                talk(f"warning: {warning}")
            cluster.supervisor_file.write_text(f"{os.getpid()}\n")
            for home, sockets in zip(cluster.homes, sockets_of_all, strict=True):
                supervisor.watch(await BrokerProcess.start(home, sockets))
        talk(f"starting {_brokers(len(cluster.homes))} in {cluster.directory}")
        members = [_member(*pair) for pair in zip(cluster.node_ids, ports, strict=True)]
        _tell_console(members, settings, is_secure=security is not None)
        return await supervisor.run(members, workload)
    finally:
        if cluster.supervisor_pid() == os.getpid():
            cluster.supervisor_file.unlink()
        await supervisor.kill()


def _tell_console(members: Sequence[Member], settings: dict[str, str], *, is_secure: bool) -> None:
    consoles = [f"{'https' if is_secure else 'http'}://{member.http}/" for member in members if member.http is not None]
    if consoles and settings.get("console.enable", "true").lower() == "true":
        talk(f"console: {consoles[0]}" + (" (every broker has one)" if len(consoles) > 1 else ""))


def _member(node_id: int, ports: Ports) -> Member:
    http = Address(HOST, ports[HTTP]) if HTTP in ports else None
    return Member(node_id, Address(HOST, ports[kafka_server(ports)]), http)


async def _until_usable(members: Sequence[Member], security: "ClusterSecurity | None") -> None:
    """Return when clients can use the cluster. A secure cluster must have a user."""
    if security is None:
        await until_ready(members)
        return
    from sskafka.cli.cluster.secure import add_admin, tell_login  # noqa: PLC0415  not for other clusters
    from sskafka.client.security import client_security  # noqa: PLC0415

    await until_ready(members, client_security(security.connection_config()))
    addresses = [str(member.address) for member in members]
    await add_admin(security, ",".join(addresses))
    tell_login(security, addresses)


def _ready_line(members: Sequence[Member]) -> str:
    bootstrap = ",".join(str(member.address) for member in members)
    http = ",".join(str(member.http) for member in members if member.http is not None)
    return f"READY bootstrap={bootstrap}" + (f" http={http}" if http else "")


class Supervisor:
    """Supervises the brokers from start to exit. Returns the exit code of the command."""

    def __init__(self, signals: StopSignals, security: "ClusterSecurity | None" = None) -> None:
        self._signals = signals
        self._security = security
        self._exits: dict[asyncio.Future[None], BrokerProcess] = {}

    def watch(self, broker: BrokerProcess) -> None:
        self._exits[asyncio.ensure_future(broker.ended())] = broker

    async def run(self, members: Sequence[Member], workload: Workload) -> int:
        ready = asyncio.ensure_future(_until_usable(members, self._security))
        try:
            await self._first_of(ready, self._signals.first)
        finally:
            ready.cancel()
        if ready.done() and not ready.cancelled():
            ready.result()
            await self._watch(asyncio.ensure_future(workload(members, self._signals.first)))
        else:
            self._refuse_early_end()
        return await self._stop()

    async def _first_of(self, *others: "asyncio.Future[Any]") -> None:
        await asyncio.wait([*others, *self._exits], return_when=asyncio.FIRST_COMPLETED)

    def _refuse_early_end(self) -> None:
        for broker in self._take_ended():
            tail = last_lines(broker.home.log_file)
            raise CommandError(
                f"{broker.exit_text()} before the cluster was ready; the end of {broker.home.log_file}:{tail}",
                "read the log; the other brokers are stopped",
            )

    async def _watch(self, workload: "asyncio.Future[None]") -> None:
        """Wait until the workload has ended, all brokers have exited, or a second signal arrives."""
        try:
            while self._exits and not workload.done() and not self._signals.second.done():
                await self._first_of(workload, self._signals.second)
                for broker in self._take_ended():
                    if broker.home.restart_file.exists() and not self._signals.first.done():
                        await self._start_again(broker)
                        continue
                    talk(f"{broker.exit_text()}; the other brokers continue. Its log: {broker.home.log_file}")
                    talk(f"  start it again: sskafka start {broker.home.properties_file}")
        finally:
            workload.cancel()
        if not workload.cancelled() and workload.done():
            workload.result()

    async def _start_again(self, broker: BrokerProcess) -> None:
        """Start a broker that was stopped to be restarted. It binds its own ports, which are in its settings."""
        broker.home.restart_file.unlink()
        self.watch(await BrokerProcess.start(broker.home, {}))
        talk(f"broker {broker.node_id} is restarted")

    def _take_ended(self) -> list[BrokerProcess]:
        return [self._exits.pop(one) for one in list(self._exits) if one.done()]

    async def _stop(self) -> int:
        if not self._exits:
            talk("all brokers have exited")
            return 1
        talk(f"stopping {_brokers(len(self._exits))}; a second signal kills them")
        stopping = list(self._exits.values())
        for are_voters in (False, True):  # brokers need a controller for their controlled shutdown
            await self._stop_cleanly([one for one in stopping if is_first_of_machine(one.node_id) is are_voters])
        unclean = [broker for broker in stopping if not broker.has_ended or broker.has_failed]
        for broker in unclean:
            talk(broker.exit_text() if broker.has_ended else f"broker {broker.node_id} did not stop and is killed")
        if unclean:
            return 1
        if not self._signals.first.done():
            return 0
        return _INTERRUPTED if self._signals.first.result() is signal.SIGINT else 0

    async def _stop_cleanly(self, brokers: Sequence[BrokerProcess]) -> None:
        for broker in brokers:
            broker.send(signal.SIGTERM)
        while not all(broker.has_ended for broker in brokers) and not self._signals.second.done():
            await self._first_of(self._signals.second)
            self._take_ended()

    async def kill(self) -> None:
        """Kill all processes that are left."""
        self._send_all(signal.SIGKILL)
        if self._exits:
            await asyncio.wait(self._exits)

    def _send_all(self, number: signal.Signals) -> None:
        for broker in self._exits.values():
            broker.send(number)
