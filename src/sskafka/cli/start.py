"""`sskafka start`: one broker in the foreground.

Prints one line on stdout when every server accepts connections: `READY bootstrap=HOST:PORT http=HOST:PORT`, the latter
where the broker has an HTTP server. Banner, warnings and logs go to stderr.
SIGTERM and Ctrl+C drain, flush and leave the mark of a clean stop; a second signal ends the process at once.
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
from typing import Any

from sskafka import __version__
from sskafka.broker import Broker
from sskafka.cli.broker_settings import home_of, load_settings
from sskafka.cli.output import talk
from sskafka.cli.pairs import key_values
from sskafka.cli.stop_signals import StopSignals
from sskafka.cli.usage import UsageError
from sskafka.model.settings import Settings
from sskafka.runtime.event_loop import new_event_loop

PID_FILE = "broker.pid"
SWITCH_INTERVAL_S = 0.001  # so long the control loop waits at most for its turn while the data loop is busy
_INTERRUPTED = 130
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def run_broker(file: Path | None, overrides: list[str], log_level: str, inherit: list[str]) -> int:
    """The exit code, once a signal has ended the broker."""
    configure_logging(log_level)
    settings = load_settings(file, overrides)
    for warning in settings.warnings:
        talk(f"warning: {warning}")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        stopped_by = runner.run(serve(settings, home_of(file), inherited_sockets(inherit)))
    return _INTERRUPTED if stopped_by is signal.SIGINT else 0


def inherited_sockets(pairs: list[str] | None) -> dict[str, socket.socket]:
    """What `sskafka cluster up` has bound for this broker: sockets by listener name."""
    descriptors = key_values(pairs, "--inherit")
    return {name: socket.socket(fileno=int(descriptor)) for name, descriptor in descriptors.items()}


async def serve(settings: Settings, home: Path, inherited: Mapping[str, socket.socket]) -> signal.Signals:
    """Runs a broker until a signal comes; answers with that signal."""
    signals = StopSignals()
    signals.second.add_done_callback(lambda _: os._exit(1))
    stop = signals.first
    broker = Broker(settings, inherited=inherited)
    with pid_file(home):
        await unless_stopped(broker.start(), stop)
        try:
            await unless_stopped(broker.servers_open(), stop)
            if not stop.done():
                talk(banner(settings, broker))
                print(ready_line(broker), flush=True)
            received = await until_stopped(broker, stop)
            talk("stopping: everything is put on the disk; a second signal ends the process at once")
        finally:
            await broker.stop()
    return received


async def unless_stopped(work: Coroutine[Any, Any, None], stop: "asyncio.Future[signal.Signals]") -> None:
    """Does a part of the start; a signal ends the wait for others that this may be."""
    starting = asyncio.ensure_future(work)
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
    if not starting.cancelled():
        starting.result()


async def until_stopped(broker: Broker, stop: "asyncio.Future[signal.Signals]") -> signal.Signals:
    """The signal that came; raises what killed the broker, if that comes first."""
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
    """Names this process while it runs. One that fails puts back what stood there: another one may be serving.

    A broker can do without, where its properties lie in a directory that it may not write to."""
    path = home / PID_FILE
    try:
        home.mkdir(parents=True, exist_ok=True)
        earlier = path.read_text() if path.exists() else None
        path.write_text(f"{os.getpid()}\n")
    except OSError as error:
        talk(f"warning: there will be no {path}: {error.strerror}")
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


def banner(settings: Settings, broker: Broker) -> str:
    facts = {
        "cluster": broker.cluster_id,
        "node": broker.node_id,
        "listeners": ", ".join(f"{item.name}://{item.host}:{item.port}" for item in settings.listeners),
        "clients": broker.bootstrap_servers,
        "http": broker.http_address or "off",
        "adr": broker.adr_address or "off",
        "data": ", ".join(settings.data_directories),
        "metadata": settings.metadata_directory,
        "recovery": broker.recovery or "nothing to recover",
    }
    width = max(len(name) for name in facts)
    return "\n".join([f"SSKafka {__version__}", *(f"  {name:<{width}}  {value}" for name, value in facts.items())])


def configure_logging(level: str) -> None:
    if level.upper() not in _LOG_LEVELS:
        raise UsageError(f"--log-level {level!r} is none of {', '.join(_LOG_LEVELS).lower()}")
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    )
