"""The listener of the binary protocol: it reads frames, handles one request at a time on each connection, and answers.

Each connection is one task, which is fast enough: the hot path is the Kafka protocol. A failed request is answered and
the connection stays open. Bytes that are not a frame are answered if their type can be read, and the connection is
closed, because the start of the next frame is unknown.

Memory is bounded: that of large frames as on Kafka's listeners (request_memory.py), that of answers by AnswerSlots.
"""

import asyncio
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeAlias

from sskafka.model.counters import AcceptorCounters
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.servers.acceptor import Acceptor
from sskafka.servers.adr.caller import binary_caller
from sskafka.servers.adr.errors import AdrServiceError
from sskafka.servers.adr.service import AdrService
from sskafka.servers.kafka.request_memory import LargeRequest, RequestMemory
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

LARGE_FRAME_BYTES = 64 * 1024
LARGE_FRAMES_BYTES_MAX = 128 * 1024 * 1024
"""Limit of what has arrived of large frames, of all connections together."""
ANSWERS_MAX = 8
"""Answers to CONSUME, of several megabytes each, that are read and sent at the same time."""
WRITE_BYTES = 256 * 1024
TICK_S = 1.0
STALLED_AFTER_S = 2.0
STALLED_MIN_S = 0.5
"""The more clients wait for a slot, the shorter is the patience with those that take nothing of their answer."""
ChosenPartitions: TypeAlias = dict[str, int]
"""The partitions of one connection, by topic."""


class ConsumerSpread:
    """Spreads consumers that let the broker choose: a connection gets the partition with the fewest such connections.

    The connection keeps its partition of a topic until it closes."""

    def __init__(self) -> None:
        self._readers: Counter[TopicPartition] = Counter()

    def partition_for(self, topic: str, partition_count: int, chosen: ChosenPartitions) -> int:
        """Return the connection's partition of the topic. At first the least used partition, the lowest of several."""
        if topic not in chosen:
            choice = min(range(partition_count), key=lambda index: (self._readers[TopicPartition(topic, index)], index))
            chosen[topic] = choice
            self._readers[TopicPartition(topic, choice)] += 1
        return chosen[topic]

    def release(self, chosen: ChosenPartitions) -> None:
        """Release the partitions of a closed connection."""
        for topic, index in chosen.items():
            self._readers[TopicPartition(topic, index)] -= 1
        chosen.clear()


class AnswerSlot:
    """The use of a slot by one connection; `close_connection` must end with the release of the slot."""

    def __init__(self, slots: "AnswerSlots", close_connection: Callable[[], object]) -> None:
        self._slots = slots
        self.close_connection = close_connection
        self.progress_s = 0.0
        self.is_sending = False

    async def __aenter__(self) -> Self:
        await self._slots.acquire(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._slots.release(self)

    def note_progress(self) -> None:
        """The answer is being sent, and the client has taken some of it."""
        self.is_sending = True
        self.progress_s = asyncio.get_running_loop().time()


class AnswerSlots:
    """Bounds the memory of answers to CONSUME: only `count` of them are read and sent at the same time.

    A client that does not read its answer keeps its slot while no other client needs it. When all slots are taken and
    other clients wait, as many connections are closed whose clients have read nothing for STALLED_AFTER_S, or less if
    many wait; a slow client goes on."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: set[AnswerSlot] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._check: asyncio.TimerHandle | None = None

    def slot(self, close_connection: Callable[[], object]) -> AnswerSlot:
        return AnswerSlot(self, close_connection)

    async def acquire(self, slot: AnswerSlot) -> None:
        while len(self._taken) >= self._count:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._close_stuck()
            await turn
        self._taken.add(slot)

    def release(self, slot: AnswerSlot) -> None:
        self._taken.discard(slot)
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break

    def _close_stuck(self) -> None:
        """Close connections that have waited for their clients for too long, if others wait; look again later."""
        loop = asyncio.get_running_loop()
        self._waiting = deque(turn for turn in self._waiting if not turn.done())
        if self._check is not None:
            self._check.cancel()
            self._check = None
        if not self._waiting:
            return
        stalled_after_s = max(STALLED_MIN_S, STALLED_AFTER_S / (1 + len(self._waiting) / self._count))
        stuck = [slot for slot in self._taken if slot.is_sending and loop.time() - slot.progress_s >= stalled_after_s]
        for slot in sorted(stuck, key=lambda slot: slot.progress_s)[: len(self._waiting)]:
            slot.is_sending = False
            slot.close_connection()
        self._check = loop.call_later(STALLED_MIN_S / 2, self._close_stuck)


class _Sender:
    """The task of a connection, as RequestMemory knows it."""

    def __init__(self, task: "asyncio.Task[None]") -> None:
        self._task = task
        self.may_read = asyncio.Event()

    def memory_available(self) -> None:
        self.may_read.set()

    def drop(self, reason: str) -> None:
        log.info("closing a connection of the ADR server: %s", reason)
        self._task.cancel()


class AdrListener:
    def __init__(
        self,
        service: AdrService,
        frame_bytes_max: int,
        idle_ms_max: int,
        arrival_ms_max: int,
        connections_max: int,
        descriptors: ConnectionDescriptors,
    ) -> None:
        self._service = service
        self._frame_bytes_max = frame_bytes_max
        self._idle_s = idle_ms_max / 1000 if idle_ms_max >= 0 else None
        self._arrival_s = arrival_ms_max / 1000
        self._connections_max = connections_max
        self._memory = RequestMemory(LARGE_FRAMES_BYTES_MAX)
        self._answer_slots = AnswerSlots(ANSWERS_MAX)
        self._spread = ConsumerSpread()
        self._connections: set[asyncio.Task[None]] = set()
        self._descriptors = descriptors
        self.acceptor_counters = AcceptorCounters("ADR")
        self._acceptor: Acceptor | None = None
        self._ticker: asyncio.TimerHandle | None = None

    def start(self, bound: socket.socket, backlog: int) -> None:
        self._acceptor = Acceptor("the ADR server", bound, self._protocol, self._descriptors, self.acceptor_counters)
        self._acceptor.start(backlog)
        self._tick()

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._serve)

    def _tick(self) -> None:
        self._memory.close_stalled("ADR", max(1, int(self._arrival_s / TICK_S)))
        self._ticker = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    async def stop(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. An error closes this connection and affects nothing else."""
        task = asyncio.current_task()
        assert task is not None
        chosen: ChosenPartitions = {}
        try:
            if len(self._connections) < self._connections_max:
                self._connections.add(task)
                await self._converse(reader, writer, chosen)
        except (asyncio.CancelledError, TimeoutError):  # the client reads or sends nothing, or the broker stops
            writer.transport.abort()  # `close` would wait until the client has taken everything
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is gone
        except Exception:
            log.exception("closing a connection of the ADR server")
        finally:
            self._connections.discard(task)
            self._spread.release(chosen)
            writer.close()
            self._descriptors.connection_closed()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chosen: ChosenPartitions
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        peer = writer.get_extra_info("peername")
        host = str(peer[0]) if peer else ""
        while True:
            async with asyncio.timeout(self._idle_s):
                length, frame_type = read_head(await reader.readexactly(HEADER_BYTES))
            try:
                request = await self._read(reader, length, frame_type, task)
            except MalformedFrameError as error:
                await self._send(writer, encode_answer(Failure(answer_type(frame_type), str(error))))
                return
            if isinstance(request, Consume):
                async with self._answer_slots.slot(task.cancel) as slot:
                    await self._send(writer, await self._encoded(request, frame_type, chosen, host), slot)
            else:
                await self._send(writer, await self._encoded(request, frame_type, chosen, host))

    async def _send(self, writer: asyncio.StreamWriter, answer: bytes, slot: AnswerSlot | None = None) -> None:
        """Send in pieces: what the client does not take yet is held once, here, and not in the transport too."""
        data = memoryview(answer)
        for start in range(0, len(data), WRITE_BYTES):
            if slot is not None:
                slot.note_progress()
            writer.write(bytes(data[start : start + WRITE_BYTES]))  # a view would keep the whole answer in memory
            async with asyncio.timeout(self._idle_s):
                await writer.drain()

    async def _read(
        self, reader: asyncio.StreamReader, length: int, frame_type: int, task: "asyncio.Task[None]"
    ) -> Request:
        if not HEADER_BYTES <= length <= self._frame_bytes_max:
            raise MalformedFrameError(f"a frame of {length} bytes is outside {HEADER_BYTES}..{self._frame_bytes_max}")
        size = length - HEADER_BYTES
        async with asyncio.timeout(self._arrival_s):
            body = await reader.readexactly(min(size, LARGE_FRAME_BYTES))
        if len(body) == size:
            return decode_request(frame_type, body)
        sender = _Sender(task)
        large = self._memory.begin(size, memoryview(body), sender)
        try:
            await self._read_rest(reader, large, sender)
            return decode_request(frame_type, bytes(large.content()))
        finally:
            self._memory.end(large)

    async def _read_rest(self, reader: asyncio.StreamReader, large: LargeRequest, sender: _Sender) -> None:
        """Read until the frame is complete; RequestMemory closes the connection if the rest does not arrive."""
        while not large.is_complete:
            if self._memory.is_full_for(large):
                sender.may_read.clear()
                await sender.may_read.wait()
            room = large.room()
            data = await reader.read(len(room))
            if not data:
                raise asyncio.IncompleteReadError(b"", large.size_bytes)
            room[: len(data)] = data
            self._memory.received(large, len(data))

    async def _encoded(self, request: Request, frame_type: int, chosen: ChosenPartitions, host: str) -> bytes:
        """Return the answer as bytes only: while it is sent, its messages are not in memory a second time."""
        return encode_answer(await self._answer(request, frame_type, chosen, host))

    async def _answer(self, request: Request, frame_type: int, chosen: ChosenPartitions, host: str) -> Answer:
        try:
            match request:
                case Produce():
                    return await self._service.produce(request, binary_caller(host, "Produce"))
                case Consume():
                    return await self._service.consume(self._resolved(request, chosen), binary_caller(host, "Consume"))
                case Flush():
                    await self._service.flush(binary_caller(host, "Flush"))
                    return Flushed()
        except (AdrServiceError, KafkaError) as error:
            return Failure(answer_type(frame_type), str(error))
        except Exception as error:
            log.exception("unexpected error in a request to the ADR server")
            return Failure(answer_type(frame_type), f"{type(error).__name__}: {error}")

    def _resolved(self, request: Consume, chosen: ChosenPartitions) -> Consume:
        count = self._service.partition_count(request.topic)
        if request.partition != ANY_PARTITION or not count:
            return request
        return request._replace(partition=self._spread.partition_for(request.topic, count, chosen))
