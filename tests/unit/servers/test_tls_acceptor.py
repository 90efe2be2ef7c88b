"""The acceptor of a server with TLS: clients that never finish a handshake do not keep others out."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from tests.support.certificates import Certificates

from sskafka.model.counters import AcceptorCounters
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.runtime.event_loop import new_event_loop
from sskafka.servers.acceptor import Acceptor

CONNECTIONS_MAX = 5


class Echo(asyncio.Protocol):
    def __init__(self, descriptors: ConnectionDescriptors) -> None:
        self._descriptors = descriptors

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        self._descriptors.connection_closed()


@pytest.mark.parametrize("new_loop", [new_event_loop, asyncio.new_event_loop])
def test_silent_handshakes_make_room(tmp_path: Path, new_loop: type) -> None:
    certificates = Certificates(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(str(certificates.issue("server.pem", "localhost")))
    client = ssl.create_default_context(cafile=str(certificates.ca))

    async def run() -> None:
        descriptors = ConnectionDescriptors(1000, CONNECTIONS_MAX)
        bound = socket.create_server(("127.0.0.1", 0))
        acceptor = Acceptor(
            "test", bound, lambda: Echo(descriptors), descriptors, AcceptorCounters("TEST"), None, lambda: server
        )
        acceptor.start(100)
        address = bound.getsockname()
        silent = [socket.create_connection(address) for _ in range(CONNECTIONS_MAX * 2)]
        try:
            async with asyncio.timeout(8):  # less than the time that a handshake may take
                reader, writer = await asyncio.open_connection(*address, ssl=client, server_hostname="localhost")
                writer.write(b"hello")
                assert await reader.readexactly(5) == b"hello"
                writer.close()
        finally:
            acceptor.close()
            for other in silent:
                other.close()
        async with asyncio.timeout(8):
            while descriptors.connections:  # noqa: ASYNC110  nothing tells when the last one is closed
                await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
