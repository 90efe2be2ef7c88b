"""Append to, read and count the partitions that this broker leads, for the ADR-0011 service.

A record is in the log when `append` returns, so later counts include it. Its offset is returned when it is committed.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import TypeAlias

from sskafka.client.fetched import CompletedFetch
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.records.builder import NewRecord, build_batch
from sskafka.replication.errors import ReplicationError
from sskafka.replication.partition import ACKS_ALL, AppendInfo, Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import Clock
from sskafka.runtime.delayed_operation import DelayedCallback
from sskafka.runtime.serial_thread import SerialThread
from sskafka.servers.adr.errors import AdrServiceError, InvalidRequestError, NotAppliedError, OutcomeUnknownError
from sskafka.storage.batch_count import SLICE_HEADERS
from sskafka.storage.errors import CorruptBatchError, InvalidRecordError, RecordTooLargeError, StorageError
from sskafka.storage.file_slice import FileSlice

Bounds: TypeAlias = tuple[int, int]
"""The first readable offset and the end offset."""

CHUNK_BYTES = 1024 * 1024
FLUSH_POLL_S = 0.002


class LocalPartitions:
    def __init__(self, replicas: ReplicaManager, clock: Clock, executor: Executor, thread: SerialThread) -> None:
        self._replicas = replicas
        self._clock = clock
        self._executor = executor
        self._thread = thread
        self._counting = asyncio.Lock()

    def find(self, topic_partition: TopicPartition) -> Partition | None:
        """Return the partition if this broker leads it."""
        try:
            partition = self._replicas.find(*topic_partition)
        except ReplicationError:
            return None
        return partition if partition.is_leader else None

    async def record_counts(self, topic: str, indexes: Iterable[int]) -> dict[int, int]:
        """Return the number of data records of each partition that this broker leads; others are left out.

        All numbers are those at one moment, so the batches that are not counted yet are counted first."""
        wanted = [TopicPartition(topic, index) for index in indexes]
        while True:
            found = [partition for item in wanted if (partition := self.find(item)) is not None]
            counts = {partition.topic_partition.partition: partition.known_record_count() for partition in found}
            known = {index: count for index, count in counts.items() if count is not None}
            if len(known) == len(counts):
                return known
            for partition in found:
                while await self._count_slice(partition):
                    pass

    async def _count_slice(self, partition: Partition) -> bool:
        """Count some batches of the log in a thread. Return False if there are none left to count.

        One slice at a time is counted, so that requests which count the same log share the work, and those which count
        a small log do not wait for a large one."""
        async with self._counting:
            if self.find(partition.topic_partition) is not partition:
                return False
            uncounted = partition.uncounted_batches()
            if uncounted is None:
                return False
            try:
                with partition.reading():
                    await self._thread.run(uncounted.read_slice, SLICE_HEADERS)
            except CorruptBatchError:
                now = partition.uncounted_batches()
                if now is not None and now.batches is uncounted.batches:  # else the log was truncated meanwhile
                    raise
            return True

    def bounds(self, topic_partition: TopicPartition) -> Bounds | None:
        partition = self.find(topic_partition)
        return None if partition is None else (partition.log_start_offset, partition.last_stable_offset)

    def append(self, partition: Partition, record: NewRecord) -> "asyncio.Future[int]":
        """Append at once. The future returns the offset when all in-sync replicas have the record."""
        _check_size(partition, record)
        batch = build_batch([record._replace(timestamp=self._clock.now_ms())])
        try:
            info = partition.append(memoryview(batch), ACKS_ALL, self._clock.now_ms())
        except ReplicationError as error:
            raise NotAppliedError(str(error)) from error
        except (InvalidRecordError, RecordTooLargeError) as error:
            raise InvalidRequestError(str(error)) from error
        except StorageError as error:
            raise AdrServiceError(str(error)) from error
        counters = partition.counters
        counters.produce_requests += 1
        counters.messages_in += 1
        counters.bytes_in += len(batch)
        return _committed(partition, info)

    async def fetch(self, partition: Partition, offset: int) -> CompletedFetch | None:
        """Return committed records from `offset` on, or from the first available one. None at the end."""
        start = max(offset, partition.log_start_offset)
        if start >= partition.last_stable_offset:
            return None
        try:
            found = partition.read(start, CHUNK_BYTES, read_committed=True)
        except (ReplicationError, StorageError) as error:
            raise NotAppliedError(str(error)) from error
        data = await asyncio.get_running_loop().run_in_executor(self._executor, _bytes_of, found.slices)
        aborted = [(first_offset, producer_id) for producer_id, first_offset in found.aborted or ()]
        return CompletedFetch(partition.topic_partition, data, start, aborted=aborted)

    async def flush(self) -> None:
        """Sync everything written so far before returning. Raise AdrError if a disk has failed."""
        ends = [(partition, partition.log_end_offset) for partition in self._replicas.partitions()]
        unsynced = [(partition, end) for partition, end in ends if partition.synced_offset < end]
        for partition, _ in unsynced:
            _check_online(partition)
            partition.flush_soon()
        for partition, end in unsynced:
            while partition.synced_offset < min(end, partition.log_end_offset):
                _check_online(partition)
                await asyncio.sleep(FLUSH_POLL_S)


def _check_size(partition: Partition, record: NewRecord) -> None:
    """Check the size before a batch is built: a huge record must not block the event loop."""
    size_bytes, limit = len(record.key or b"") + len(record.value or b""), partition.config.max_message_bytes
    if size_bytes > limit:
        raise InvalidRequestError(f"a record of {size_bytes} bytes, max.message.bytes is {limit}")


def _bytes_of(slices: Iterable[FileSlice]) -> bytes:
    return b"".join(part.read() for part in slices)


def _check_online(partition: Partition) -> None:
    try:
        partition.check_online()
    except StorageError as error:
        raise AdrServiceError(str(error)) from error


def _committed(partition: Partition, info: AppendInfo) -> "asyncio.Future[int]":
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    if info.last_offset < partition.high_watermark:
        future.set_result(info.base_offset)
        return future

    def completed(outcome: ErrorCode) -> None:
        if future.done():
            return
        if outcome is ErrorCode.NONE:
            future.set_result(info.base_offset)
        else:
            where = f"{partition.topic_partition} at offset {info.base_offset}"
            future.set_exception(OutcomeUnknownError(f"written to {where}, outcome unknown: {outcome.name}"))

    delayed = DelayedCallback(completed)
    delayed.begin(1)
    delayed.wait_for(0, partition.committed_waiters, info.last_offset + 1, partition)
    return future
