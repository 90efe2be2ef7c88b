"""The broker's side of the HTTP process: start it, configure it, and restart it when it dies.

    run        start a child process on that socket and answer its private socket; when it dies, start the next one
    opened     the child has reported that it accepts requests
    cancelled  the private socket is closed, which ends the child; a child that does not end is killed

The port stays bound here, so connections that arrive without a child wait for the next one. If the HTTP process never
comes up, the broker fails to start. Later exits are logged and the process is restarted, because no data is affected.
"""

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from sskafka.servers.http.configuration import CONFIGURATION, OPENED, Configuration
from sskafka.servers.local.server import Answer, serve

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 3.0
PAUSE_MIN_S = 0.5
PAUSE_MAX_S = 30.0


class HttpServerError(ChildProcessError):
    """The HTTP process could not be started."""


class HttpServerProcess:
    def __init__(self, bound: socket.socket, configuration: Configuration, answers: Mapping[str, Answer]) -> None:
        self._bound = bound
        self._configuration = configuration
        self._answers = {**answers, CONFIGURATION: self._tell_configuration, OPENED: self._note_opened}
        self._opened = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        pause_s = PAUSE_MIN_S
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            try:
                end = f"ended with exit code {await self._run_once()}"
            except OSError as error:
                end = f"could not be started: {error}"
            if not self._opened.is_set():
                raise HttpServerError(f"the HTTP process {end} before it accepted requests")
            pause_s = PAUSE_MIN_S if loop.time() - began_s > PAUSE_MAX_S else min(pause_s * 2, PAUSE_MAX_S)
            log.error("the HTTP process %s; the next one starts in %.1f s", end, pause_s)
            await asyncio.sleep(pause_s)

    async def opened(self) -> None:
        await self._opened.wait()

    async def _run_once(self) -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._start(theirs)
        try:
            ours.setblocking(False)
            await serve(ours, self._answers)
            return await self._ended(process)
        finally:
            ours.close()
            await self._ended(process)

    def _start(self, link: socket.socket) -> "subprocess.Popen[bytes]":
        descriptors = (link.fileno(), self._bound.fileno())
        arguments = [str(descriptor) for descriptor in descriptors]
        command = [sys.executable, "-P", "-m", "sskafka.servers.http", *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=descriptors)

    async def _ended(self, process: "subprocess.Popen[bytes]") -> int:
        """Return the exit code. The private socket is closed, so the process is about to exit or does not respond."""
        return await asyncio.get_running_loop().run_in_executor(None, _reap, process)

    async def _tell_configuration(self, details: Mapping[str, Any]) -> dict[str, Any]:
        return self._configuration.to_json()

    async def _note_opened(self, details: Mapping[str, Any]) -> None:
        self._opened.set()


def _reap(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
