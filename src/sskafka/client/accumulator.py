"""Producer batches, queued by partition until a broker acknowledges them.

    send -> [closed batch] [closed batch] [open batch]      one queue per partition, oldest batch first
             ^ head: at most one batch of a partition is in flight

The head stays in its queue until the broker has acknowledged it, so a later batch can never overtake a retry.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sskafka.model.ids import TopicPartition
from sskafka.records.builder import BatchBuilder, encoded_size_max
from sskafka.records.compression import Compression
from sskafka.records.record import Headers


class Delivery(NamedTuple):
    """Where a record was stored. `offset` is -1 with acks=0, and for a duplicate whose offset the broker forgot."""

    partition: TopicPartition
    offset: int
    timestamp: int


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int
    is_transactional: bool = False


NO_IDENTITY = ProducerIdentity(-1, -1)


@dataclass(slots=True, eq=False)
class OutgoingBatch:
    partition: TopicPartition
    created_ms: float
    builder: BatchBuilder = field(default_factory=BatchBuilder)
    waiters: list[tuple[asyncio.Future[Delivery], int]] = field(default_factory=list)
    """Future and timestamp of each record."""
    is_closed: bool = False
    is_in_flight: bool = False
    """Whether the sender has taken the batch. It then stays in its queue until its attempt has ended."""
    transaction: int = 0
    """Number of the transaction in which its records were sent."""
    not_before_ms: float = 0
    failures: int = 0
    may_be_stored: bool = False
    """Whether an attempt has ended with something other than a certain refusal."""
    unknown_since_ms: float = math.inf
    """Since when brokers answer that the topic or partition does not exist."""
    identity: ProducerIdentity = NO_IDENTITY
    sequence: int = -1
    """First sequence number. Assigned on the first send and kept for retries, so that the broker detects duplicates."""

    @property
    def size_bytes(self) -> int:
        return self.builder.size_bytes

    def encoded(self, codec: Compression) -> bytearray:
        return self.builder.build(
            compression=codec,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.sequence,
            transactional=self.identity.is_transactional,
        )

    def succeed(self, base_offset: int, append_time: int) -> None:
        for index, (future, timestamp) in enumerate(self.waiters):
            if not future.done():
                offset = base_offset + index if base_offset >= 0 else -1
                future.set_result(Delivery(self.partition, offset, timestamp if append_time < 0 else append_time))

    def fail(self, error: Exception) -> None:
        for future, _ in self.waiters:
            if not future.done():
                future.set_exception(error)

    def cancel(self) -> None:
        for future, _ in self.waiters:
            future.cancel()


class Accumulator:
    """The batch queues of all partitions and the number of bytes buffered in them."""

    def __init__(self, batch_bytes_max: int) -> None:
        self._batch_bytes_max = batch_bytes_max
        self._queues: dict[TopicPartition, deque[OutgoingBatch]] = {}
        self.waiting_bytes = 0

    def __bool__(self) -> bool:
        return any(self._queues.values())

    def append(
        self,
        partition: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        now_ms: float,
        transaction: int = 0,
    ) -> tuple[asyncio.Future[Delivery], bool]:
        """Add a record to the open batch of `partition`, or to a new batch if the open one has no room or belongs to
        another transaction.

        Return the future of the record's delivery, and whether a new batch was started."""
        queue = self._queues.setdefault(partition, deque())
        last = queue[-1] if queue and not queue[-1].is_closed else None
        is_new = last is None or last.transaction != transaction or not self._fits(last, key, value, headers)
        if is_new:
            if last is not None:
                last.is_closed = True
            queue.append(OutgoingBatch(partition, now_ms, transaction=transaction))
        batch = queue[-1]
        before = batch.size_bytes
        batch.builder.append(key, value, headers, timestamp)
        self.waiting_bytes += batch.size_bytes - before
        future: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        batch.waiters.append((future, timestamp))
        return future, is_new

    def _fits(self, batch: OutgoingBatch, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        return batch.size_bytes + encoded_size_max(key, value, headers) <= self._batch_bytes_max

    def starts_batch(self, partition: TopicPartition) -> bool:
        """Return whether the next record for `partition` starts a new batch."""
        queue = self._queues.get(partition)
        return not queue or queue[-1].is_closed

    def heads(self) -> Iterator[OutgoingBatch]:
        """Return the first batch of each partition, except those that are already in flight."""
        for queue in self._queues.values():
            if queue and not queue[0].is_in_flight:
                yield queue[0]

    def remove(self, batch: OutgoingBatch) -> None:
        """Remove the head of a partition's queue after it was acknowledged or failed."""
        removed = self._queues[batch.partition].popleft()
        assert removed is batch
        self.waiting_bytes -= batch.size_bytes - BatchBuilder().size_bytes

    def discard(self) -> None:
        """Drop the batches that are not in flight and cancel the delivery futures of their records."""
        for partition, queue in self._queues.items():
            for batch in [batch for batch in queue if not batch.is_in_flight]:
                batch.cancel()
                self.waiting_bytes -= batch.size_bytes - BatchBuilder().size_bytes
            self._queues[partition] = deque(batch for batch in queue if batch.is_in_flight)

    def fail(self, error: Exception) -> None:
        """Fail the delivery futures of all records. The batches stay, because they were not delivered."""
        for queue in self._queues.values():
            for batch in queue:
                batch.fail(error)

    def cancel(self) -> None:
        """Drop all batches and cancel the delivery futures of their records."""
        for queue in self._queues.values():
            for batch in queue:
                batch.cancel()
        self._queues.clear()
        self.waiting_bytes = 0
