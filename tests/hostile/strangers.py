"""Clients that are no users: they connect to a secured listener, send what nobody should send, and go.

raw     bytes without a TLS handshake, some of them a damaged ClientHello
TLS     a handshake, then malformed frames, logins with wrong parts, and requests that must not be served
"""

import asyncio
import random
import ssl
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tests.support.sasl_listener import strange_streams

from sskafka.wire.apis import ApiKey
from sskafka.wire.header import encode_request_header

TOGETHER = 40
READ_S_MAX = 2.0
TLS_SHARE = 0.2
WHOLE_SHARE = 0.2
ALL_TOPICS = encode_request_header(ApiKey.METADATA, 1, 9, "c") + struct.pack(">i", -1)
ALL_GROUPS = encode_request_header(ApiKey.LIST_GROUPS, 0, 10, "c")
HIDDEN = (b"hidden-topic", b"localhost")
"""What only served requests return: topics, and the address of a broker."""


class Strangers:
    def __init__(self, sasl_plaintext: str, sasl_ssl: str, ca: Path, seed: int) -> None:
        self._plain = sasl_plaintext.rsplit(":", 1)
        self._secure = sasl_ssl.rsplit(":", 1)
        self._trusting = ssl.create_default_context(cafile=str(ca))
        self._rng = random.Random(seed)
        self._streams = strange_streams(seed)
        self.seed = seed
        self.connections = 0
        self.bytes_received = 0

    async def attack(self, count: int) -> None:
        """Open `count` connections, some at the same time."""
        inputs = islice(self._inputs(client_hello()), count)
        async with asyncio.TaskGroup() as group:
            for _ in range(TOGETHER):
                group.create_task(self._work(inputs))

    def _inputs(self, hello: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the kind of a connection and what it sends."""
        while True:
            stream = next(self._streams)
            if self._rng.random() < WHOLE_SHARE:
                stream = framed(ALL_TOPICS) + framed(ALL_GROUPS) + stream
            kind = self._rng.random()
            if kind < TLS_SHARE:
                yield "tls", stream
            elif kind < 2 * TLS_SHARE:
                yield "raw", self._damaged(hello) if self._rng.random() < 0.5 else stream
            else:
                yield "plain", stream

    def _damaged(self, hello: bytes) -> bytes:
        damaged = bytearray(hello)
        for _ in range(self._rng.randrange(4)):
            damaged[self._rng.randrange(len(damaged))] = self._rng.randrange(256)
        return bytes(damaged[: self._rng.randrange(1, len(damaged) + 1)])

    async def _work(self, inputs: Iterator[tuple[str, bytes]]) -> None:
        for kind, sent in inputs:
            host, port = self._plain if kind == "plain" else self._secure
            with suppress(ConnectionError, ssl.SSLError):
                received = await self._exchange(host, int(port), sent, self._trusting if kind == "tls" else None)
                self.bytes_received += len(received)
                for secret in HIDDEN:
                    assert secret not in received, f"seed {self.seed}: {received!r} was the answer to {sent!r}"
            self.connections += 1

    async def _exchange(self, host: str, port: int, sent: bytes, tls: ssl.SSLContext | None) -> bytes:
        """Send everything, say that nothing follows, and return what came until the broker has closed."""
        reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        try:
            writer.write(sent)
            await writer.drain()
            if tls is None:
                writer.write_eof()
            with suppress(TimeoutError):
                return await asyncio.wait_for(reader.read(1 << 20) if tls else reader.read(), READ_S_MAX)
            return b""
        finally:
            writer.transport.abort()


def framed(request: bytes) -> bytes:
    return struct.pack(">i", len(request)) + request


def client_hello() -> bytes:
    """Return the first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
