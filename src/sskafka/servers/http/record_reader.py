"""Read records for HTTP callers from the leader, up to the high watermark.

    enough records?                           -> return them
    the log continues above the high          -> wait for the high watermark, at most a second, so that a caller
    watermark?                                   reads its own acks 1 writes
    no record at all?                         -> wait as long as the caller requested

A waiting fetch delays everything after it on its connection, so each fetch uses its own connection from a pool.
"""

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.errors import broker_error
from sskafka.client.fetched import CompletedFetch, ConsumedRecord
from sskafka.client.fetcher import Position, fetch
from sskafka.client.offsets import EARLIEST, list_offsets
from sskafka.client.replica_positions import replica_positions
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition

NO_LEADER_TIMEOUT_MS = 5_000
HIGH_WATERMARK_WAIT_MS = 1_000
FETCH_WAIT_MAX_MS = 500
ANSWER_BYTES_MAX = 4 * 1024 * 1024
RECORD_BYTES_GUESS = 1024
FETCH_BYTES_MIN, FETCH_BYTES_MAX = 16 * 1024, 1024 * 1024
IDLE_CONNECTIONS_MAX = 16


class ReadRecords(NamedTuple):
    records: list[ConsumedRecord]
    is_empty: bool
    """Nothing was ever committed to the partition."""


@dataclasses.dataclass(slots=True)
class _Reading:
    """The state of one read."""

    partition: TopicPartition
    next_offset: int
    records_max: int
    records: list[ConsumedRecord] = dataclasses.field(default_factory=list)
    size_bytes: int = 0
    high_watermark: int = -1
    """-1: the response did not have it, for example because the client has exceeded its quota."""

    @property
    def is_full(self) -> bool:
        return len(self.records) >= self.records_max or self.size_bytes >= ANSWER_BYTES_MAX

    @property
    def fetch_bytes(self) -> int:
        """Return a size for records of usual length, so that a request for one record does not fetch a megabyte."""
        left = self.records_max - len(self.records)
        return min(max(left * RECORD_BYTES_GUESS, FETCH_BYTES_MIN), FETCH_BYTES_MAX)

    def take(self, fetched: CompletedFetch) -> None:
        for record in fetched:
            if self.is_full:
                return
            self.records.append(record)
            self.size_bytes += len(record.key or b"") + len(record.value or b"")
        self.next_offset = fetched.next_offset


class RecordReader:
    def __init__(self, cluster: Cluster, new_cluster: Callable[[], Cluster], own: Cluster) -> None:
        """`own` asks for the positions of replicas, which the clients of this server may not see."""
        self._cluster = cluster
        self._own = own
        self._new_cluster = new_cluster
        self._idle: list[Cluster] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for cluster in self._idle:
            await cluster.close()

    async def read(self, partition: TopicPartition, from_offset: int, records_max: int, wait_ms: int) -> ReadRecords:
        reading = _Reading(partition, from_offset, records_max)
        await self._read_on(reading, self._cluster, 0)
        if not reading.is_full:
            await self._read_what_is_being_committed(reading)
        if not reading.records and wait_ms > 0:
            deadline_ms = self._cluster.deadline_ms(wait_ms)
            async with self.borrowed() as waiting:
                await self._await_records(reading, waiting, deadline_ms)
        return ReadRecords(reading.records, reading.high_watermark == 0)

    async def _read_what_is_being_committed(self, reading: _Reading) -> None:
        positions = await self._own.retrying(
            lambda: replica_positions(self._own, reading.partition),
            topics=[reading.partition.topic],
            deadline_ms=self._own.deadline_ms(NO_LEADER_TIMEOUT_MS),
        )
        written_to = positions.log_end_offset
        if reading.next_offset >= written_to:
            return
        if positions.high_watermark >= written_to:
            await self._read_on(reading, self._cluster, 0)
            return
        deadline_ms = self._cluster.deadline_ms(HIGH_WATERMARK_WAIT_MS)
        async with self.borrowed() as waiting:
            while reading.next_offset < written_to and not reading.is_full and self._left_ms(deadline_ms) > 0:
                await self._read_on(reading, waiting, self._left_ms(deadline_ms))

    async def _await_records(self, reading: _Reading, waiting: Cluster, deadline_ms: float) -> None:
        while not reading.records and self._left_ms(deadline_ms) > 0:
            await self._read_on(reading, waiting, self._left_ms(deadline_ms))

    def _left_ms(self, deadline_ms: float) -> int:
        return min(int(deadline_ms - self._cluster.clock.monotonic_ms()), FETCH_WAIT_MAX_MS)

    async def _read_on(self, reading: _Reading, cluster: Cluster, wait_ms: int) -> None:
        """Fetch until the answer is full or nothing more is committed."""
        while not reading.is_full:
            before = reading.next_offset
            await cluster.retrying(
                lambda: self._fetch(reading, cluster, wait_ms),
                topics=[reading.partition.topic],
                deadline_ms=cluster.deadline_ms(NO_LEADER_TIMEOUT_MS),
            )
            if reading.next_offset == before or reading.next_offset >= reading.high_watermark:
                return

    async def _fetch(self, reading: _Reading, cluster: Cluster, wait_ms: int) -> None:
        partition = reading.partition
        leader = (await cluster.leader_of(partition)).leader
        config = ConsumerConfig(fetch_max_wait_ms=wait_ms, max_partition_fetch_bytes=reading.fetch_bytes)
        for answer in await fetch(cluster, config, leader, {partition: Position(reading.next_offset)}):
            data = answer.data
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._enter_range(reading, cluster)
            elif data.error_code != ErrorCode.NONE:
                raise broker_error(data.error_code, f"reading {partition}")
            else:
                reading.high_watermark = data.high_watermark
                reading.take(CompletedFetch(partition, data.records or b"", reading.next_offset))

    async def _enter_range(self, reading: _Reading, cluster: Cluster) -> None:
        """Skip deleted records. A reader beyond the end has read everything."""
        partition = reading.partition
        first = (await list_offsets(cluster, {partition: EARLIEST}))[partition].offset
        reading.high_watermark = (await replica_positions(self._own, partition)).high_watermark
        reading.next_offset = max(reading.next_offset, first)

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[Cluster]:
        """Lend a cluster on whose connections requests may wait at brokers: no other request uses them at that time."""
        cluster = self._idle.pop() if self._idle else self._new_cluster()
        try:
            yield cluster
        except BaseException:
            await cluster.close()  # an answer may still arrive on its connections
            raise
        if len(self._idle) < IDLE_CONNECTIONS_MAX:
            self._idle.append(cluster)
        else:
            await cluster.close()
