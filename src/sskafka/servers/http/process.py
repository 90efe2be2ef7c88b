"""Run uvicorn on the port that the broker has bound, until the private socket closes."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from sskafka.model.counters import AcceptorCounters
from sskafka.model.security.certificate_names import parse_mapping_rules
from sskafka.runtime.clock import SystemClock
from sskafka.runtime.descriptors import ConnectionDescriptors, limit
from sskafka.runtime.event_loop import new_event_loop
from sskafka.runtime.log_format import HTTP, TEXT, configure_logs
from sskafka.servers.acceptor import Acceptor
from sskafka.servers.http.app import build_app
from sskafka.servers.http.certificates import HttpCertificates
from sskafka.servers.http.configuration import CONFIGURATION, OPENED, Configuration
from sskafka.servers.http.connections import CONNECTIONS_MAX, HttpConnections
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.history.sampler import HistorySampler
from sskafka.servers.http.otlp import OtlpExporter
from sskafka.servers.local.link import BrokerGoneError, LocalLink

NICENESS = 5  # set once the server is open: the broker has priority when both need the CPU
KEEP_ALIVE_S = 65
GRACE_S = 1  # for running requests when the broker stops; long polls are cut off
BACKLOG = 1024
LOG_LEVEL = "WARNING"


class Server(uvicorn.Server):
    """Accepts connections itself, within bounds, and reports when it is open. The broker handles the signals."""

    def __init__(
        self,
        config: uvicorn.Config,
        link: LocalLink,
        connections: HttpConnections,
        counters: AcceptorCounters,
        certificates: HttpCertificates | None = None,
        work: Sequence[Coroutine[Any, Any, None]] = (),
    ) -> None:
        """`work` runs while the server is open."""
        super().__init__(config)
        self._work = work
        self._certificates = certificates
        self._link = link
        self._connections = connections
        self._counters = counters
        self.servers = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        assert sockets is not None
        self._acceptor = Acceptor(
            "the HTTP server",
            sockets[0],
            self._protocol_maker(),
            self._connections.descriptors,
            self._counters,
            self._connections.close_unfinished,
            None if self._certificates is None else self._certificates.context,
        )
        self._acceptor.start(BACKLOG)
        self._tasks = [asyncio.create_task(self._connections.sweep()), *map(asyncio.create_task, self._work)]
        if self._certificates is not None:
            self._tasks += [asyncio.create_task(work) for work in self._certificates.watches()]
        self.started = True
        os.nice(NICENESS)
        await self._link.ask(OPENED)

    def _protocol_maker(self) -> Callable[[], asyncio.Protocol]:
        protocol = self._connections.bounded(cast("type[Any]", self.config.http_protocol_class))
        return partial(protocol, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._acceptor.close()
        for task in self._tasks:
            task.cancel()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run(link_end: socket.socket, listener: socket.socket) -> None:
    link = await LocalLink.open(link_end)
    link_ended = asyncio.create_task(link.run())
    configuration = Configuration.from_json(await link.ask(CONFIGURATION))
    configure_logs(LOG_LEVEL, configuration.log_format, configuration.node_id, HTTP)
    async with HttpContext(configuration, link, SystemClock()) as context:
        certificates = await HttpCertificates.read(link) if configuration.security.has_tls else None
        server = make_server(context, link, certificates)
        link_ended.add_done_callback(lambda _: setattr(server, "should_exit", True))
        await server.serve([listener])
    await link_ended


def make_server(context: HttpContext, link: LocalLink, certificates: HttpCertificates | None) -> Server:
    descriptors = ConnectionDescriptors(limit(), CONNECTIONS_MAX)
    rules = context.configuration.security.mapping_rules
    connections = HttpConnections(
        descriptors, asyncio.get_running_loop().time, None if rules is None else parse_mapping_rules(rules)
    )
    config = server_config(connections.limited(build_app(context)))
    target = context.configuration.otlp
    work = [] if target is None else [OtlpExporter(target, context.metrics, context.clock).run()]
    if context.configuration.is_broker:
        work.append(HistorySampler(context.history, context.cluster, context.clock).run())
    return Server(config, link, connections, context.acceptor_counters, certificates, work)


def server_config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


def main(link: int, listener: int) -> None:
    configure_logs(LOG_LEVEL, TEXT, process=HTTP)
    with contextlib.suppress(BrokerGoneError), asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run(socket.socket(fileno=link), socket.socket(fileno=listener)))
