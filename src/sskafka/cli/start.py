"""`sskafka start`: one broker in the foreground.

When all listeners are open, one line is printed to stdout: `READY bootstrap=HOST:PORT http=HOST:PORT`, the latter if
the broker has an HTTP server. Banner, warnings and logs go to stderr. SIGTERM and Ctrl+C drain requests, flush the logs
and write the clean-shutdown file; a second signal ends the process at once.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sskafka import __version__
from sskafka.broker import Broker
from sskafka.cli.broker_settings import AUTHORITY_FILE, home_of, load_settings
from sskafka.cli.host.directories import check_none_left_out
from sskafka.cli.output import talk
from sskafka.cli.stop_signals import StopSignals
from sskafka.cli.usage import UsageError, key_values
from sskafka.compiled import BUILD
from sskafka.model.settings import Settings
from sskafka.runtime.descriptors import raise_limit
from sskafka.runtime.event_loop import new_event_loop
from sskafka.runtime.garbage_collection import keep_pauses_short
from sskafka.runtime.log_format import DETAILS, JSON, configure_logs

if TYPE_CHECKING:
    from sskafka.cli.cluster.secure import ClusterSecurity

log = logging.getLogger(__name__)

PID_FILE = "broker.pid"
SWITCH_INTERVAL_S = 0.001  # the longest wait of the control loop for the GIL while the data loop is busy
_INTERRUPTED = 130
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def run_broker(
    file: Path | None,
    overrides: list[str],
    log_level: str,
    inherit: list[str],
    member: str | None = None,
    *,
    secure: bool = False,
) -> int:
    """Run the broker until a signal stops it. Return the exit code.

    `member`: the home of one of several brokers of this machine, which `--brokers-per-host` has started."""
    settings, security = _settings_and_security(file, overrides, secure)
    configure_logging(log_level, settings, is_one_of_several=member is not None)
    if member is None:
        for warning in settings.warnings:
            log.warning("%s", warning) if settings["log.format"] == JSON else talk(f"warning: {warning}")
        check_none_left_out(settings.data_directories, [settings["node.id"]])
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    raise_limit()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        home = home_of(file) if member is None else Path(member)
        work = serve(settings, home, inherited_sockets(inherit), security, is_member=member is not None)
        stopped_by = runner.run(work)
    return _INTERRUPTED if stopped_by is signal.SIGINT else 0


def _settings_and_security(
    file: Path | None, overrides: list[str], secure: bool
) -> "tuple[Settings, ClusterSecurity | None]":
    """A single node that was secured once stays secured."""
    if file is not None and secure:
        raise UsageError("--secure is for a single node without a file; docs/security.md has the settings for a file")
    if file is not None or not (secure or AUTHORITY_FILE.exists()):
        return load_settings(file, overrides), None
    from sskafka.cli.secure_start import secure_node  # noqa: PLC0415  not for other nodes

    return secure_node(overrides)


async def _add_admin(broker: Broker, security: "ClusterSecurity") -> None:
    from sskafka.cli.cluster.secure import add_admin, tell_login  # noqa: PLC0415  not for other nodes

    await add_admin(security, broker.bootstrap_servers)
    tell_login(security, broker.bootstrap_servers.split(","))


def inherited_sockets(pairs: list[str] | None) -> dict[str, socket.socket]:
    """Return the sockets that `sskafka cluster up` has bound for this broker, by listener name."""
    descriptors = key_values(pairs, "--inherit")
    return {name: socket.socket(fileno=int(descriptor)) for name, descriptor in descriptors.items()}


async def serve(
    settings: Settings,
    home: Path,
    inherited: Mapping[str, socket.socket],
    security: "ClusterSecurity | None" = None,
    *,
    is_member: bool = False,
) -> signal.Signals:
    """Run a broker until a signal arrives. Return the signal.

    The standard input of one of several brokers of this machine ends with their supervisor; that is a signal, too."""
    signals = StopSignals()
    if is_member:
        signals.stop_at_end_of_input()
    signals.second.add_done_callback(lambda _: os._exit(1))
    stop = signals.first
    broker = Broker(settings, inherited=inherited)
    collecting = asyncio.ensure_future(keep_pauses_short())
    with pid_file(home):
        await unless_stopped(broker.start(), stop)
        try:
            await unless_stopped(broker.servers_open(), stop)
            if security is not None:
                await unless_stopped(_add_admin(broker, security), stop)
            if not stop.done():
                tell_start(settings, broker)
                print(ready_line(broker), flush=True)
            received = await until_stopped(broker, stop)
            tell = log.info if settings["log.format"] == JSON else talk
            tell("stopping: flushing all logs; a second signal ends the process at once")
        finally:
            collecting.cancel()
            await broker.stop()
    return received


async def unless_stopped(work: Coroutine[Any, Any, None], stop: "asyncio.Future[signal.Signals]") -> None:
    """Run one step of the startup, which may wait for other nodes. A signal cancels it."""
    starting = asyncio.ensure_future(work)
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
    if not starting.cancelled():
        starting.result()


async def until_stopped(broker: Broker, stop: "asyncio.Future[signal.Signals]") -> signal.Signals:
    """Return the signal that arrives. If the broker fails first, raise its error."""
    failure = asyncio.ensure_future(broker.failure())
    try:
        await asyncio.wait((stop, failure), return_when=asyncio.FIRST_COMPLETED)
        if failure.done():
            failure.result()
    finally:
        failure.cancel()
    return await stop


@contextmanager
def pid_file(home: Path) -> Iterator[None]:
    """Write the process id while the broker runs. If startup fails, restore the old content: another broker may run.

    The broker also runs without a pid file if the directory is not writable."""
    path = home / PID_FILE
    try:
        home.mkdir(parents=True, exist_ok=True)
        earlier = path.read_text() if path.exists() else None
        path.write_text(f"{os.getpid()}\n")
    except OSError as error:
        talk(f"warning: cannot write {path}: {error.strerror}")
        yield
        return
    try:
        yield
    except BaseException:
        if earlier is not None:
            path.write_text(earlier)
        else:
            path.unlink(missing_ok=True)
        raise
    path.unlink(missing_ok=True)


def ready_line(broker: Broker) -> str:
    http = f" http={broker.http_address}" if broker.http_address is not None else ""
    return f"READY bootstrap={broker.bootstrap_servers}{http}"


def tell_start(settings: Settings, broker: Broker) -> None:
    """Show what was started, on stderr: in a table, or as a line of a JSON log."""
    facts = start_facts(settings, broker)
    if settings["log.format"] == JSON:
        log.info("SSKafka %s is ready", __version__, extra={DETAILS: facts})
        return
    width = max(len(name) for name in facts)
    talk("\n".join([f"SSKafka {__version__}, {BUILD}", *(f"  {name:<{width}}  {at}" for name, at in facts.items())]))


def start_facts(settings: Settings, broker: Broker) -> dict[str, object]:
    return {
        "cluster": broker.cluster_id,
        "node": broker.node_id,
        "listeners": ", ".join(f"{item.name}://{item.host}:{item.port}" for item in settings.listeners),
        "clients": broker.bootstrap_servers,
        "console": console_address(settings, broker) or "off",
        "http": broker.http_address or "off",
        "adr": broker.adr_address or "off",
        "data": ", ".join(settings.data_directories),
        "metadata": settings.metadata_directory,
        "recovery": broker.recovery or "nothing to recover",
    }


def console_address(settings: Settings, broker: Broker) -> str | None:
    """Return the address of the console; None without one. Nodes that are only controllers have none."""
    http, is_broker = settings.http_endpoint, "broker" in settings["process.roles"]
    if http is None or broker.http_address is None or not is_broker or not settings["console.enable"]:
        return None
    return f"{'https' if http.uses_tls else 'http'}://{broker.http_address}/"


def configure_logging(level: str, settings: Settings, *, is_one_of_several: bool = False) -> None:
    if level.upper() not in _LOG_LEVELS:
        raise UsageError(f"--log-level {level!r} is none of {', '.join(_LOG_LEVELS).lower()}")
    mark = f" [{settings['node.id']}]" if is_one_of_several else ""
    configure_logs(level.upper(), settings["log.format"], settings["node.id"], mark=mark)
