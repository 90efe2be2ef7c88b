"""Client for the ADR-0011 binary listener: one connection, one request at a time.

    with AdrClient("localhost:9180") as client:
        offset, partition = client.produce("orders", b"3 apples", key="customer-7")
        next_offset, messages = client.consume("orders", partition, 0)

`AsyncAdrClient` offers the same calls on an event loop. Neither client retries: after a lost connection it is unknown
whether the broker applied the last request.
"""

import asyncio
from contextlib import suppress
from typing import Self, TypeVar

from sskafka.client.async_clients import Text, as_bytes
from sskafka.client.cluster import parse_bootstrap
from sskafka.client.connection import Address
from sskafka.client.errors import BrokerUnavailableError, ClientError, ConnectionLostError, ProtocolError
from sskafka.client.loop_thread import ThreadedClient
from sskafka.wire.adr import (
    ANY_PARTITION,
    HEADER_BYTES,
    NO_PARTITION,
    Consume,
    Consumed,
    Failure,
    Flush,
    Flushed,
    MalformedFrameError,
    Produce,
    Produced,
    Request,
    decode_answer,
    encode_request,
    read_head,
)

DEFAULT_ADDRESS = "localhost:9180"
BATCH_SIZE = 100
ANSWER_BYTES_MAX = 512 * 1024 * 1024

A = TypeVar("A", Produced, Consumed, Flushed)


class AdrError(ClientError):
    """The server rejected the request. `partition` is the partition it had selected by then, or -1."""

    def __init__(self, message: str, partition: int = NO_PARTITION) -> None:
        super().__init__(message)
        self.partition = partition


class AsyncAdrClient:
    """Use as `async with AsyncAdrClient("localhost:9180") as client`. Concurrent calls are sent one after another."""

    def __init__(self, address: str | Address = DEFAULT_ADDRESS) -> None:
        self._address = parse_bootstrap(address)[0] if isinstance(address, str) else address
        self._turn = asyncio.Lock()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        try:
            self._reader, self._writer = await asyncio.open_connection(*self._address)
        except OSError as error:
            raise BrokerUnavailableError(f"cannot connect to {self._address}: {error.strerror or error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        return self._writer is not None and not self._writer.is_closing()

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            with suppress(OSError):  # the server closed the connection first
                await writer.wait_closed()

    async def produce(self, topic: str, data: Text, *, key: Text | None = None) -> Produced:
        """Store one message in the partition of its key; without a key, in the partition with the fewest messages."""
        return await self._request(Produce(topic, as_bytes(key), as_bytes(data) or b""), Produced)

    async def consume(
        self, topic: str, partition: int = ANY_PARTITION, offset: int = 0, batch_size: int = BATCH_SIZE
    ) -> Consumed:
        """Return messages from `offset` on, and the offset to continue at.

        With partition -1 the broker selects a partition and keeps it for the lifetime of this connection."""
        return await self._request(Consume(topic, partition, offset, batch_size), Consumed)

    async def flush(self) -> None:
        """Return when everything produced so far is on the disks of the brokers."""
        await self._request(Flush(), Flushed)

    async def _request(self, request: Request, expected: type[A]) -> A:
        async with self._turn:
            try:
                frame_type, body = await self._exchange(encode_request(request))
                answer = decode_answer(frame_type, body)
            except (OSError, asyncio.IncompleteReadError) as error:
                await self.close()
                raise ConnectionLostError(f"the connection to {self._address} was lost") from error
            except (MalformedFrameError, asyncio.CancelledError) as error:
                # A late response would be taken for the response to the next request.
                await self.close()
                if isinstance(error, MalformedFrameError):
                    raise ProtocolError(f"cannot decode the response of {self._address}: {error}") from error
                raise
        if isinstance(answer, Failure):
            raise AdrError(answer.text, answer.partition)
        if not isinstance(answer, expected):
            raise ProtocolError(f"{self._address} answered {type(request).__name__} with {type(answer).__name__}")
        return answer

    async def _exchange(self, frame: bytes) -> tuple[int, bytes]:
        if self._reader is None or self._writer is None:
            raise ConnectionLostError(f"the connection to {self._address} is closed")
        self._writer.write(frame)
        await self._writer.drain()
        length, frame_type = read_head(await self._reader.readexactly(HEADER_BYTES))
        if not HEADER_BYTES <= length <= ANSWER_BYTES_MAX:
            raise MalformedFrameError(f"frame of {length} bytes is not between {HEADER_BYTES} and {ANSWER_BYTES_MAX}")
        return frame_type, await self._reader.readexactly(length - HEADER_BYTES)


class AdrClient(ThreadedClient[AsyncAdrClient]):
    """`AsyncAdrClient` for programs without an event loop."""

    def __init__(self, address: str | Address = DEFAULT_ADDRESS) -> None:
        super().__init__("sskafka-adr", lambda: AsyncAdrClient(address))

    def produce(self, topic: str, data: Text, *, key: Text | None = None) -> Produced:
        return self._thread.run(self._client.produce(topic, data, key=key))

    def consume(
        self, topic: str, partition: int = ANY_PARTITION, offset: int = 0, batch_size: int = BATCH_SIZE
    ) -> Consumed:
        return self._thread.run(self._client.consume(topic, partition, offset, batch_size))

    def flush(self) -> None:
        self._thread.run(self._client.flush())
