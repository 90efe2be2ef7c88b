"""Run uvicorn on the port that the broker has bound, until the private socket closes."""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from sskafka.model.counters import AcceptorCounters
from sskafka.runtime.clock import SystemClock
from sskafka.runtime.descriptors import ConnectionDescriptors, limit
from sskafka.runtime.event_loop import new_event_loop
from sskafka.servers.acceptor import Acceptor
from sskafka.servers.http.app import build_app
from sskafka.servers.http.configuration import CONFIGURATION, OPENED, Configuration
from sskafka.servers.http.connections import CONNECTIONS_MAX, HttpConnections
from sskafka.servers.http.context import HttpContext
from sskafka.servers.local.link import BrokerGoneError, LocalLink

NICENESS = 5  # set once the server is open: the broker has priority when both need the CPU
KEEP_ALIVE_S = 65
GRACE_S = 1  # for running requests when the broker stops; long polls are cut off
BACKLOG = 1024


class Server(uvicorn.Server):
    """Accepts connections itself, within bounds, and reports when it is open. The broker handles the signals."""

    def __init__(
        self, config: uvicorn.Config, link: LocalLink, connections: HttpConnections, counters: AcceptorCounters
    ) -> None:
        super().__init__(config)
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
        )
        self._acceptor.start(BACKLOG)
        self._sweep = asyncio.create_task(self._connections.sweep())
        self.started = True
        os.nice(NICENESS)
        await self._link.ask(OPENED)

    def _protocol_maker(self) -> Callable[[], asyncio.Protocol]:
        protocol = self._connections.bounded(cast("type[Any]", self.config.http_protocol_class))
        return partial(protocol, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._acceptor.close()
        self._sweep.cancel()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run(link_end: socket.socket, listener: socket.socket) -> None:
    link = await LocalLink.open(link_end)
    link_ended = asyncio.create_task(link.run())
    configuration = Configuration.from_json(await link.ask(CONFIGURATION))
    async with HttpContext(configuration, link, SystemClock()) as context:
        server = make_server(context, link)
        link_ended.add_done_callback(lambda _: setattr(server, "should_exit", True))
        await server.serve([listener])
    await link_ended


def make_server(context: HttpContext, link: LocalLink) -> Server:
    descriptors = ConnectionDescriptors(limit(), CONNECTIONS_MAX)
    connections = HttpConnections(descriptors, asyncio.get_running_loop().time)
    config = server_config(connections.limited(build_app(context)))
    return Server(config, link, connections, context.acceptor_counters)


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
    logging.basicConfig(
        level="WARNING", stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(name)s (HTTP): %(message)s"
    )
    with contextlib.suppress(BrokerGoneError), asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run(socket.socket(fileno=link), socket.socket(fileno=listener)))
