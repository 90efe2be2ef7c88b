"""The listener of the binary protocol: it reads frames, handles one request at a time on each connection, and answers.

Each connection is one task, which is fast enough: the hot path is the Kafka protocol. A failed request is answered and
the connection stays open. Bytes that are not a frame are answered if their type can be read, and the connection is
closed, because the start of the next frame is unknown.
"""

import asyncio
import logging
import socket
from contextlib import nullcontext

from sskafka.model.errors import KafkaError
from sskafka.servers.adr.consumer_spread import Chosen, ConsumerSpread
from sskafka.servers.adr.errors import AdrServiceError
from sskafka.servers.adr.service import AdrService
from sskafka.wire.adr import (
    ANY_PARTITION,
    HEADER_BYTES,
    Answer,
    Consume,
    Failure,
    Flush,
    Flushed,
    MalformedFrameError,
    Produce,
    Request,
    answer_type,
    decode_request,
    encode_answer,
    read_head,
)

log = logging.getLogger(__name__)

LARGE_FRAME_BYTES = 1024 * 1024
LARGE_FRAMES_MAX = 4
"""Limit of large frames read at once by all connections together, to bound memory."""


class AdrListener:
    def __init__(self, service: AdrService, frame_bytes_max: int, idle_ms_max: int, connections_max: int) -> None:
        self._service = service
        self._frame_bytes_max = frame_bytes_max
        self._idle_s = idle_ms_max / 1000 if idle_ms_max >= 0 else None
        self._connections_max = connections_max
        self._large_frames = asyncio.Semaphore(LARGE_FRAMES_MAX)
        self._spread = ConsumerSpread()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, bound: socket.socket, backlog: int) -> None:
        self._server = await asyncio.start_server(self._serve, sock=bound, backlog=backlog)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. An error closes this connection and affects nothing else."""
        task = asyncio.current_task()
        assert task is not None
        chosen: Chosen = {}
        try:
            if len(self._connections) < self._connections_max:
                self._connections.add(task)
                await self._converse(reader, writer, chosen)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, TimeoutError):
            pass  # the client is gone or was silent for too long, or the broker stops
        except Exception:
            log.exception("closing a connection of the ADR server")
        finally:
            self._connections.discard(task)
            self._spread.release(chosen)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chosen: Chosen) -> None:
        while True:
            async with asyncio.timeout(self._idle_s):
                length, frame_type = read_head(await reader.readexactly(HEADER_BYTES))
            try:
                request = await self._read(reader, length, frame_type)
            except MalformedFrameError as error:
                writer.write(encode_answer(Failure(answer_type(frame_type), str(error))))
                await writer.drain()
                return
            writer.write(encode_answer(await self._answer(request, frame_type, chosen)))
            await writer.drain()

    async def _read(self, reader: asyncio.StreamReader, length: int, frame_type: int) -> Request:
        if not HEADER_BYTES <= length <= self._frame_bytes_max:
            raise MalformedFrameError(f"a frame of {length} bytes is outside {HEADER_BYTES}..{self._frame_bytes_max}")
        async with self._large_frames if length > LARGE_FRAME_BYTES else nullcontext():
            async with asyncio.timeout(self._idle_s):
                body = await reader.readexactly(length - HEADER_BYTES)
            return decode_request(frame_type, body)

    async def _answer(self, request: Request, frame_type: int, chosen: Chosen) -> Answer:
        try:
            match request:
                case Produce():
                    return await self._service.produce(request)
                case Consume():
                    return await self._service.consume(self._resolved(request, chosen))
                case Flush():
                    await self._service.flush()
                    return Flushed()
        except (AdrServiceError, KafkaError) as error:
            return Failure(answer_type(frame_type), str(error))
        except Exception as error:
            log.exception("unexpected error in a request to the ADR server")
            return Failure(answer_type(frame_type), f"{type(error).__name__}: {error}")

    def _resolved(self, request: Consume, chosen: Chosen) -> Consume:
        count = self._service.partition_count(request.topic)
        if request.partition != ANY_PARTITION or not count:
            return request
        return request._replace(partition=self._spread.partition_for(request.topic, count, chosen))
