"""The supervisor of a machine's brokers: `sskafka start --brokers-per-host N` in the foreground.

    start    all ports are bound here first, so a taken port is found before anything runs; then all brokers start
    ready    one READY line names the addresses of all brokers
    run      a broker that ends, for whatever reason, is started again after a pause; the others continue
    stop     the first signal stops all brokers cleanly, the first broker last, because it may be the only voter, which
             the others need for their controlled shutdown; a second signal kills those that are left

If a broker ends before all of them are ready, the others are stopped and the command fails.
"""

import asyncio
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sskafka.cli.broker_settings import AUTHORITY_FILE, home_of, load_settings
from sskafka.cli.failures import CommandError
from sskafka.cli.host.directories import check_none_left_out
from sskafka.cli.host.members import Member, plan_members, voters_of
from sskafka.cli.host.process import MemberProcess, StartCommand
from sskafka.cli.output import talk
from sskafka.cli.start import configure_logging, pid_file
from sskafka.cli.stop_signals import StopSignals
from sskafka.cli.usage import UsageError
from sskafka.model.settings import Settings
from sskafka.servers.kafka.sockets import PortTakenError, bind
from sskafka.storage.disk import OsDisk

PAUSE_MIN_S = 1.0
PAUSE_MAX_S = 30.0
_INTERRUPTED = 130

Sockets = Mapping[str, socket.socket]
"""Bound sockets of one broker, by the name of the listener."""


def run_brokers(file: Path | None, overrides: list[str], log_level: str, count: int) -> int:
    """Run the brokers of this machine until a signal stops them. Return the exit code."""
    if file is None and AUTHORITY_FILE.exists():
        raise UsageError("--brokers-per-host does not start a node that `start --secure` made; use cluster up --secure")
    machine = load_settings(file, overrides)
    configure_logging(log_level, machine)
    for warning in machine.warnings:
        talk(f"warning: {warning}")
    members = plan_members(machine, count, OsDisk())
    for idle in check_none_left_out(machine.data_directories, [member.node_id for member in members]):
        talk(f"broker {idle} of this machine holds no partitions and is not started")
        talk(f"  remove it from the cluster: sskafka cluster unregister {idle}")
    command = StartCommand(None if file is None else str(file), overrides, log_level)

    async def supervise() -> int:
        return await HostSupervisor(machine, members, command).run()

    with pid_file(home_of(file)):
        return asyncio.run(supervise())


class HostSupervisor:
    def __init__(self, machine: Settings, members: Sequence[Member], command: StartCommand) -> None:
        self._machine = machine
        self._members = members
        self._command = command
        self._signals = StopSignals()
        self._own: dict[int, dict[str, str]] = {}
        self._processes: dict[int, MemberProcess] = {}

    async def run(self) -> int:
        """Run the brokers until a signal arrives. Return the exit code."""
        try:
            await self._start_all()
            addresses = await self._until_ready()
            if addresses is not None:
                print(ready_line(addresses), flush=True)
                await self._until_stopped()
            return await self._stop()
        finally:
            await self._kill()

    async def _start_all(self) -> None:
        with ExitStack() as stack:
            sockets = [_bind_all(member, stack) for member in self._members]
            first_ports = _ports(sockets[0])
            for number, (member, bound) in enumerate(zip(self._members, sockets, strict=True)):
                voters = voters_of(self._machine, first_ports) if number else {}
                self._own[member.node_id] = {**member.overrides(_ports(bound)), **voters}
            for member, bound in zip(self._members, sockets, strict=True):
                self._processes[member.node_id] = await self._start(member, bound)
        ids = ", ".join(str(member.node_id) for member in self._members)
        talk(f"starting brokers {ids} on this machine")

    async def _start(self, member: Member, sockets: Sockets | None = None) -> MemberProcess:
        """Start a broker. After a restart it binds its ports itself."""
        inherited = {name: bound.fileno() for name, bound in (sockets or {}).items()}
        words = self._command.words(member.home, self._own[member.node_id], inherited)
        return await MemberProcess.start(member.node_id, words, list(inherited.values()))

    # ---- readiness

    async def _until_ready(self) -> list[dict[str, str]] | None:
        """Return the addresses of all brokers, or None after a signal."""
        ready = [asyncio.ensure_future(process.ready()) for process in self._processes.values()]
        all_ready = asyncio.ensure_future(asyncio.gather(*ready))
        try:
            await _first_of(all_ready, self._signals.first)
            return all_ready.result() if all_ready.done() and not self._signals.first.done() else None
        except EOFError as error:
            raise CommandError(
                f"{error} before all brokers of the machine were ready; its log is above", "the others are stopped"
            ) from error
        finally:
            all_ready.cancel()
            await asyncio.wait(ready)

    # ---- while they run

    async def _until_stopped(self) -> None:
        keeping = [asyncio.ensure_future(self._keep_running(member)) for member in self._members]
        try:
            await _first_of(*keeping, self._signals.first)
            for failed in (task for task in keeping if task.done()):
                failed.result()
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.wait(keeping)

    async def _keep_running(self, member: Member) -> None:
        """Start the broker again whenever it ends. Only cancellation ends this."""
        loop = asyncio.get_running_loop()
        pause_s, began_s = PAUSE_MIN_S, loop.time()
        while True:
            process = self._processes[member.node_id]
            await process.ended()
            pause_s = PAUSE_MIN_S if loop.time() - began_s > PAUSE_MAX_S else min(pause_s * 2, PAUSE_MAX_S)
            talk(f"{process.exit_text()}; it is started again in {pause_s:.0f} s, the other brokers continue")
            await asyncio.sleep(pause_s)
            began_s = loop.time()
            process = self._processes[member.node_id] = await self._start(member)
            try:
                await process.ready()
                talk(f"broker {member.node_id} is ready again, as process {process.pid}")
            except EOFError:
                continue  # reported as its end

    # ---- stop

    async def _stop(self) -> int:
        talk("stopping all brokers of this machine; a second signal kills them")
        first, *others = self._processes.values()
        for batch in (others, [first]):
            for process in batch:
                process.send(signal.SIGTERM)
            ending = asyncio.ensure_future(asyncio.gather(*(process.ended() for process in batch)))
            await _first_of(ending, self._signals.second)
            ending.cancel()
        unclean = [process for process in self._processes.values() if not process.has_ended or process.has_failed]
        for process in unclean:
            talk(process.exit_text() if process.has_ended else f"broker {process.node_id} did not stop and is killed")
        if unclean:
            return 1
        return _INTERRUPTED if self._signals.first.result() is signal.SIGINT else 0

    async def _kill(self) -> None:
        for process in self._processes.values():
            process.send(signal.SIGKILL)
        await asyncio.gather(*(process.ended() for process in self._processes.values()))


async def _first_of(*futures: "asyncio.Future[Any]") -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


def ready_line(addresses: Sequence[Mapping[str, str]]) -> str:
    """Return the line that names the addresses of all brokers, each kind joined by commas."""
    names = list(dict.fromkeys(name for one in addresses for name in one))
    words = (f"{name}={','.join(one[name] for one in addresses if name in one)}" for name in names)
    return f"READY {' '.join(words)}"


def _bind_all(member: Member, stack: ExitStack) -> dict[str, socket.socket]:
    bound: dict[str, socket.socket] = {}
    for listener in member.listeners:
        try:
            bound[listener.name] = stack.enter_context(bind(listener))
        except PortTakenError as error:
            raise CommandError(
                f"port {listener.port}, of {listener.name} of broker {member.node_id}, is in use by another program",
                f"stop that program, or select another port for {listener.name}: the brokers of a machine use the "
                "configured port and the ones after it; 0 uses any free ones",
            ) from error
        except OverflowError as error:
            raise CommandError(
                f"invalid port {listener.port} for {listener.name} of broker {member.node_id}", "use a lower port"
            ) from error
    return bound


def _ports(sockets: Sockets) -> dict[str, int]:
    return {name: bound.getsockname()[1] for name, bound in sockets.items()}
