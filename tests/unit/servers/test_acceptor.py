"""The acceptor of a server without TLS."""

import asyncio
import socket

import pytest

from sskafka.model.counters import AcceptorCounters
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.servers.acceptor import Acceptor


def test_a_connection_that_cannot_be_served_is_closed_and_the_next_one_is_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[socket.socket] = []

    def begin(accepted: socket.socket) -> None:
        seen.append(accepted)
        raise TypeError("an error of the server")

    async def run() -> None:
        descriptors = ConnectionDescriptors(1000)
        bound = socket.create_server(("127.0.0.1", 0))
        acceptor = Acceptor("test", bound, None, descriptors, AcceptorCounters("TEST"), begin=begin)
        acceptor.start(100)
        try:
            for count in (1, 2):
                reader, writer = await asyncio.open_connection(*bound.getsockname())
                async with asyncio.timeout(8):
                    assert await reader.read() == b""
                writer.close()
                assert len(seen) == count
            assert descriptors.connections == 0
        finally:
            acceptor.close()

    asyncio.run(run())
    assert caplog.text.count("test: a connection cannot be served") == 2
