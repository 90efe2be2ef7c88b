"""Sends inputs to a broker on many connections, and opens a new connection for each that the broker closes.

An input is one frame. The next frame of a connection follows when the broker has answered, or after ANSWER_S: some
requests wait, and produce requests with acks=0 have no response.
"""

import asyncio
import struct
from collections.abc import Iterator
from contextlib import suppress

CONNECTIONS = 24
ANSWER_S = 0.05
CONNECT_ATTEMPTS = 100
READ_BYTES = 1 << 20


class FuzzClient:
    def __init__(self, host: str, port: int, inputs: Iterator[bytes]) -> None:
        self._host = host
        self._port = port
        self._inputs = inputs
        self.sent = 0
        self.answered = 0
        self.closed = 0

    async def run(self) -> None:
        """Send all inputs. Raise ConnectionError when the broker does not accept connections any more."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONNECTIONS):
                tasks.create_task(self._send_all())

    async def _send_all(self) -> None:
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        for frame in self._inputs:
            if connection is None:
                connection = await self._connect()
            reader, writer = connection
            self.sent += 1
            try:
                writer.write(struct.pack(">i", len(frame)) + frame)
                await self._read_answer(reader)
            except ConnectionError:
                self.closed += 1
                writer.close()
                connection = None
        if connection is not None:
            connection[1].close()

    async def _read_answer(self, reader: asyncio.StreamReader) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                if not await reader.read(READ_BYTES):
                    raise ConnectionResetError
                self.answered += 1

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for _ in range(CONNECT_ATTEMPTS):
            with suppress(ConnectionError):
                return await asyncio.open_connection(self._host, self._port)
            await asyncio.sleep(0.1)  # the broker has refused it; a broker that ended refuses all attempts
        raise ConnectionError("the broker accepts no connections")
