"""ConsumerEngine of assigned partitions: no group and no commits; the caller keeps the positions.

    async with Cluster("localhost:9092") as cluster, Consumer(cluster) as consumer:
        consumer.assign({TopicPartition("orders", 0): 0})
        records = await consumer.poll()

At most one fetch is in flight to each broker that assigned partitions are read from. A fetch outlives the `poll` that
started it, so a poll that times out loses nothing, and the next records arrive while the caller processes the last
ones. A fetch response for a position that was changed in the meantime is dropped. A partition that cannot be read now
does not block the others.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from sskafka.client.backoff import Randomness
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.errors import LogTruncatedError, NoOffsetForPartitionError, fetch_error, is_retriable
from sskafka.client.fetch_sources import FetchSources
from sskafka.client.fetched import CompletedFetch, ConsumedRecord
from sskafka.client.fetcher import NO_EPOCH, NO_REPLICA, FetchAnswer, Position, fetch
from sskafka.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from sskafka.client.record_buffer import RecordBuffer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.fetch import PartitionData

_RESET_TO = {"earliest": EARLIEST, "latest": LATEST}


class _Fetch(NamedTuple):
    """A fetch in flight."""

    partitions: list[TopicPartition]
    task: asyncio.Task[list[FetchAnswer]]


class ConsumerEngine:
    def __init__(
        self, cluster: Cluster, config: ConsumerConfig | None = None, *, randomness: Randomness | None = None
    ) -> None:
        self.config = config or ConsumerConfig()
        self._cluster = cluster
        self._positions: dict[TopicPartition, Position] = {}
        self._sources = FetchSources(cluster, randomness or random.Random())
        self._fetches: dict[int, _Fetch] = {}
        self._buffer = RecordBuffer(self._advance_position)
        self._failures = 0
        self._failing_since_ms: float | None = None
        self.interruption: asyncio.Future[None] | None = None
        """When it is done, a poll that waits for records returns without any, so that the caller can reassign
        partitions."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        tasks = self._tasks()
        self._fetches = {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[list[FetchAnswer]]]:
        return [in_flight.task for in_flight in self._fetches.values()]

    # Positions

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._positions)

    def assign(self, offsets: Mapping[TopicPartition, int], *, any_replica: bool = False) -> None:
        """Replace the assignment: read exactly these partitions, each from its offset."""
        self._buffer.clear()
        self._positions = {partition: Position(offset, any_replica) for partition, offset in offsets.items()}

    def add(
        self, partition: TopicPartition, offset: int, *, any_replica: bool = False, last_epoch: int = NO_EPOCH
    ) -> None:
        """Add a partition to the assignment. With `any_replica`, read it from any in-sync replica.

        `last_epoch` is the leader epoch of the record before `offset`, if that is known."""
        self._buffer.drop(partition)
        self._positions[partition] = Position(offset, any_replica, last_epoch=last_epoch)

    def unassign(self, partition: TopicPartition) -> None:
        self._buffer.drop(partition)
        self._positions.pop(partition, None)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read the partition from `offset` on; a partition that is not assigned yet is added to the assignment."""
        known = self._positions.get(partition)
        self.add(partition, offset, any_replica=known is not None and known.reads_any_replica)

    def position(self, partition: TopicPartition) -> int:
        """Return the offset after the last record that `poll` returned."""
        return self._positions[partition].offset

    def last_epoch(self, partition: TopicPartition) -> int:
        """Return the leader epoch of the last record that `poll` returned, or -1 if that is not known."""
        return self._positions[partition].last_epoch

    def source(self, partition: TopicPartition) -> int:
        """Return the replica that the partition is read from, or -1 for its leader."""
        return self._positions[partition].replica

    def high_watermark(self, partition: TopicPartition) -> int:
        """Return the high watermark as of the last fetch, or -1 before the first fetch."""
        return self._positions[partition].high_watermark

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        await self._seek_to(EARLIEST, partitions)

    async def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        await self._seek_to(LATEST, partitions)

    async def seek_to_timestamp(self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the first record at or after the timestamp, or to the end if there is none."""
        await self._seek_to(timestamp_ms, partitions)

    async def _seek_to(self, timestamp: int, partitions: Iterable[TopicPartition] | None) -> None:
        chosen = list(self._positions if partitions is None else partitions)
        isolation = self.config.isolation
        found = await list_offsets(self._cluster, dict.fromkeys(chosen, timestamp), isolation=isolation)
        beyond = [partition for partition in chosen if found[partition].offset == NO_OFFSET]
        found |= await list_offsets(self._cluster, dict.fromkeys(beyond, LATEST), isolation=isolation)
        for partition in chosen:
            self.seek(partition, found[partition].offset)

    # Reading

    async def poll(self, timeout_ms: int = 1000, max_records: int | None = None) -> list[ConsumedRecord]:
        """Return records of the brokers that answer first, at most `max_records`, taking turns between partitions.

        Return an empty list if no records arrive within `timeout_ms`. Retriable failures are retried for up to
        `default.api.timeout.ms`; other failures are raised."""
        deadline_ms = self._cluster.deadline_ms(timeout_ms)
        while self._positions:
            failure = await self._advance(deadline_ms)
            if self.interruption is not None and self.interruption.done():
                return []
            records = self._buffer.take(max_records)
            if records:
                try:
                    await self._start_fetches()
                except BaseException:  # the poll was cancelled: nobody receives these records
                    self._rewind(records)
                    raise
                return records
            if failure is not None:
                await self._back_off(failure, deadline_ms)
            if self._cluster.clock.monotonic_ms() >= deadline_ms:
                return []
        return []

    def _rewind(self, records: list[ConsumedRecord]) -> None:
        """Read these records again."""
        for record in reversed(records):
            self.seek(TopicPartition(record.topic, record.partition), record.offset)

    def take_buffered(self) -> ConsumedRecord | None:
        """Return the next record that is fetched already, without waiting; None if there is none."""
        records = self._buffer.take(1)
        return records[0] if records else None

    async def _advance(self, deadline_ms: float) -> Exception | None:
        """Start fetches and collect completed ones; wait for a response only if no record is buffered."""
        failure = await self._start_fetches()
        if not self._buffer and self._fetches:
            left_ms = max(deadline_ms - self._cluster.clock.monotonic_ms(), 0)
            awaited: list[asyncio.Future[Any]] = [*self._tasks()]
            if self.interruption is not None:
                awaited.append(self.interruption)
            await asyncio.wait(awaited, timeout=left_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        failures = [error for error in (failure, *(await self._collect())) if error is not None]
        if not failures:
            self._failures, self._failing_since_ms = 0, None
        return next((error for error in failures if not is_retriable(error)), failures[0] if failures else None)

    async def _start_fetches(self) -> Exception | None:
        """Start a fetch to each broker that has none in flight, for partitions without buffered records."""
        wanted = {partition: at for partition, at in self._positions.items() if partition not in self._buffer}
        try:
            sources = await self._sources.by_broker(wanted)
        except Exception as error:
            return error
        for broker, positions in sources.items():
            if broker not in self._fetches:
                task = asyncio.create_task(fetch(self._cluster, self.config, broker, positions))
                task.add_done_callback(_note_failure)
                self._fetches[broker] = _Fetch(list(positions), task)
        if not sources and not self._fetches and not self._buffer:
            return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{min(wanted)} has no leader now")
        return None

    async def _collect(self) -> list[Exception]:
        """Process the completed fetches and return their failures."""
        failures: list[Exception] = []
        for broker in [broker for broker, in_flight in self._fetches.items() if in_flight.task.done()]:
            done = self._fetches.pop(broker)
            try:
                answers = done.task.result()
            except Exception as error:
                failures.append(error)
                self._reset_sources(done.partitions)
                continue
            for answer in answers:
                try:
                    await self._handle(answer)
                except Exception as error:  # partitions fail independently
                    failures.append(error)
                    self._reset_sources([answer.partition])
        return failures

    def _reset_sources(self, partitions: Iterable[TopicPartition]) -> None:
        """Choose the replica to read from again, with refreshed metadata."""
        for partition in partitions:
            if partition in self._positions:
                self._positions[partition].replica = NO_REPLICA
                self._sources.request_refresh(partition.topic)

    async def _back_off(self, failure: Exception, deadline_ms: float) -> None:
        now_ms = self._cluster.clock.monotonic_ms()
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        has_timed_out = now_ms - self._failing_since_ms >= self._cluster.config.default_api_timeout_ms
        if has_timed_out or not is_retriable(failure):
            raise failure
        self._cluster.forget(*{partition.topic for partition in self._positions})
        await self._cluster.pause(self._failures, deadline_ms, failure)
        self._failures += 1

    async def _handle(self, answer: FetchAnswer) -> None:
        position, data = self._positions.get(answer.partition), answer.data
        if position is None or position.offset != answer.fetch_offset or answer.partition in self._buffer:
            return
        if data.preferred_read_replica != NO_REPLICA:
            position.replica = data.preferred_read_replica
            position.replica_until_ms = self._cluster.deadline_ms(self._cluster.config.metadata_max_age_ms)
        elif not answer.is_from_leader and _denies_offset(data):
            position.replica = NO_REPLICA
            position.must_ask_leader = True
        elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._reset(answer)
        elif data.error_code != ErrorCode.NONE:
            raise fetch_error(data.error_code, answer.partition)
        elif data.diverging_epoch.end_offset >= 0:
            self._handle_divergence(answer)
        else:
            self._buffer_records(answer, position)

    def _buffer_records(self, answer: FetchAnswer, position: Position) -> None:
        data = answer.data
        position.must_ask_leader = False
        position.high_watermark = data.high_watermark
        position.last_stable_offset = data.last_stable_offset
        position.log_start_offset = data.log_start_offset
        if data.records:
            aborted = ((aborted.first_offset, aborted.producer_id) for aborted in data.aborted_transactions or ())
            check = self.config.check_crcs
            self._buffer.put(
                CompletedFetch(answer.partition, data.records, position.offset, aborted=aborted, check_crcs=check)
            )

    def _advance_position(self, fetched: CompletedFetch) -> None:
        position = self._positions[fetched.partition]
        position.offset = fetched.next_offset
        if fetched.last_epoch != NO_EPOCH:
            position.last_epoch = fetched.last_epoch

    async def _reset(self, answer: FetchAnswer) -> None:
        """Seek to where `auto.offset.reset` says, because the position is outside the log."""
        reset_to = _RESET_TO.get(self.config.auto_offset_reset)
        if reset_to is None:
            raise NoOffsetForPartitionError(
                f"offset {answer.fetch_offset} of {answer.partition} is out of range and auto.offset.reset is none"
            )
        await self._seek_to(reset_to, [answer.partition])

    def _handle_divergence(self, answer: FetchAnswer) -> None:
        """Seek to the offset where the leader's log diverges from the log read so far, or raise LogTruncatedError."""
        end_offset = answer.data.diverging_epoch.end_offset
        if self.config.auto_offset_reset not in _RESET_TO:
            raise LogTruncatedError(f"{answer.partition} was truncated to {end_offset}, below {answer.fetch_offset}")
        self.seek(answer.partition, min(end_offset, answer.fetch_offset))


def _denies_offset(data: PartitionData) -> bool:
    """Return whether the replica's log does not have the offset, or not the records that were read before it."""
    return data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE or data.diverging_epoch.end_offset >= 0


def _note_failure(task: "asyncio.Task[list[FetchAnswer]]") -> None:
    """Retrieve the exception of a fetch that no later poll collects, so that asyncio does not log it as unretrieved."""
    if not task.cancelled():
        task.exception()
