"""Run uvicorn on the port that the broker has bound, until the private socket closes."""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Iterator

import uvicorn

from sskafka.runtime.clock import SystemClock
from sskafka.runtime.event_loop import new_event_loop
from sskafka.servers.http.app import build_app
from sskafka.servers.http.configuration import CONFIGURATION, OPENED, Configuration
from sskafka.servers.http.context import HttpContext
from sskafka.servers.local.link import BrokerGoneError, LocalLink

NICENESS = 5  # set once the server is open: the broker has priority when both need the CPU
KEEP_ALIVE_S = 65
GRACE_S = 1  # for running requests when the broker stops; long polls are cut off
CONNECTIONS_MAX = 2000
BACKLOG = 1024


class Server(uvicorn.Server):
    """Reports when it is open. The broker handles the signals."""

    def __init__(self, config: uvicorn.Config, link: LocalLink) -> None:
        super().__init__(config)
        self._link = link

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        os.nice(NICENESS)
        await self._link.ask(OPENED)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run(link_end: socket.socket, listener: socket.socket) -> None:
    link = await LocalLink.open(link_end)
    link_ended = asyncio.create_task(link.run())
    configuration = Configuration.from_json(await link.ask(CONFIGURATION))
    async with HttpContext(configuration, link, SystemClock()) as context:
        server = Server(server_config(context), link)
        link_ended.add_done_callback(lambda _: setattr(server, "should_exit", True))
        await server.serve([listener])
    await link_ended


def server_config(context: HttpContext) -> uvicorn.Config:
    return uvicorn.Config(
        build_app(context),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


def main(link: int, listener: int) -> None:
    logging.basicConfig(
        level="WARNING", stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(name)s (HTTP): %(message)s"
    )
    with contextlib.suppress(BrokerGoneError), asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run(socket.socket(fileno=link), socket.socket(fileno=listener)))
