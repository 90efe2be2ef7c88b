"""Records on their way out, collected into batches by partition.

    send -> [closed batch] [closed batch] [open batch]      one queue a partition, oldest first
             ^ the head: at most one under way

The head stays in its queue until the broker has answered for it, so a retry can never be overtaken by what follows.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sskafka.model.ids import TopicPartition
from sskafka.records.builder import BatchBuilder, encoded_size_max
from sskafka.records.compression import Compression
from sskafka.records.record import Headers


class Delivery(NamedTuple):
    """Where a record ended up. `offset` is -1 with acks=0, and for a duplicate whose offset the broker forgot."""

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
    """For each record its future and timestamp."""
    is_closed: bool = False
    is_under_way: bool = False
    not_before_ms: float = 0
    failures: int = 0
    identity: ProducerIdentity = NO_IDENTITY
    sequence: int = -1
    """Given when the batch is first sent and kept through retries: that is how the broker knows a repetition."""

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
        for place, (future, timestamp) in enumerate(self.waiters):
            if not future.done():
                offset = base_offset + place if base_offset >= 0 else -1
                future.set_result(Delivery(self.partition, offset, timestamp if append_time < 0 else append_time))

    def fail(self, error: Exception) -> None:
        for future, _ in self.waiters:
            if not future.done():
                future.set_exception(error)

    def cancel(self) -> None:
        for future, _ in self.waiters:
            future.cancel()


class Accumulator:
    """The queues of all partitions, and how many bytes wait in them."""

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
    ) -> tuple[asyncio.Future[Delivery], bool]:
        """Adds a record to the open batch, or to a new one. Tells whether a batch began or became full by it."""
        queue = self._queues.setdefault(partition, deque())
        is_new = not queue or queue[-1].is_closed or not self._fits(queue[-1], key, value, headers)
        if is_new:
            if queue:
                queue[-1].is_closed = True
            queue.append(OutgoingBatch(partition, now_ms))
        batch = queue[-1]
        before = batch.size_bytes
        batch.builder.append(key, value, headers, timestamp)
        self.waiting_bytes += batch.size_bytes - before
        future: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        batch.waiters.append((future, timestamp))
        return future, is_new

    def _fits(self, batch: OutgoingBatch, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        return batch.size_bytes + encoded_size_max(key, value, headers) <= self._batch_bytes_max

    def is_fresh(self, partition: TopicPartition) -> bool:
        """Whether the next record to `partition` begins a batch."""
        queue = self._queues.get(partition)
        return not queue or queue[-1].is_closed

    def heads(self) -> Iterator[OutgoingBatch]:
        """The batch that each partition must send next, unless it is under way already."""
        for queue in self._queues.values():
            if queue and not queue[0].is_under_way:
                yield queue[0]

    def remove(self, batch: OutgoingBatch) -> None:
        """The head of a partition is done with, one way or the other."""
        removed = self._queues[batch.partition].popleft()
        assert removed is batch
        self.waiting_bytes -= batch.size_bytes - BatchBuilder().size_bytes

    def discard(self) -> None:
        """Forgets what has not been sent; who waits for its delivery is told that it was cancelled."""
        for partition, queue in self._queues.items():
            for batch in [batch for batch in queue if not batch.is_under_way]:
                batch.cancel()
                self.waiting_bytes -= batch.size_bytes - BatchBuilder().size_bytes
            self._queues[partition] = deque(batch for batch in queue if batch.is_under_way)

    def cancel(self) -> None:
        """Whoever waits for a delivery waits no longer."""
        for queue in self._queues.values():
            for batch in queue:
                batch.cancel()
        self._queues.clear()
        self.waiting_bytes = 0
