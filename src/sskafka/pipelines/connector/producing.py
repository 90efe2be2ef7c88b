"""How a task writes: it collects columns, splits them by partition, encodes them in bulk and sends a batch for each
partition at a time.

Each batch has the producer's id, epoch and sequence, so that the broker drops duplicates of a retry. In a transaction,
AddPartitionsToTxn precedes the first batch of a partition.
"""

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, raise_for
from sskafka.client.transactions import Transaction, add_partitions
from sskafka.model.buffers import Buffer
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.binary_columns import Numbers, binary_or_nulls
from sskafka.pipelines.connector.commit_log import CommitLog
from sskafka.pipelines.connector.commit_protocol import Handover
from sskafka.pipelines.connector.decision import Decision, Part, Place
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import (
    Columns,
    Payload,
    framed,
    headers_column,
    no_headers,
    payloads_of,
)
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.options import SinkOptions
from sskafka.pipelines.connector.partitioning import partition_numbers
from sskafka.pipelines.connector.transactions import begin, begin_without_timeout, fence
from sskafka.records.compression import Compression
from sskafka.records.record import Headers
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_COLLECTED_BYTES_MAX = 16 * 1024 * 1024
_SEQUENCE_MASK = 0x7FFFFFFF
_ABANDONED_WITHIN_S = 5
"""Brokers that are not available must not keep Spark from starting the next attempt."""

logger = logging.getLogger(__name__)


class TaskProducer:
    """The writer of one task. Without a transactional id it is idempotent, and the query is at-least-once."""

    def __init__(
        self,
        cluster: Cluster,
        options: SinkOptions,
        transactional_id: str | None,
        slot: int,
        *,
        two_phase: bool = False,
        handed: Handover | None = None,
    ) -> None:
        """`two_phase`: the transaction may have no timeout, because another process will end it in any case.

        `handed`: write in the driver's transaction; `flush_with_decision` ends the task then."""
        self._cluster = cluster
        self._options = options
        self._transactional_id = transactional_id
        self._codec = Compression.named(options.compression)
        self._identity: Transaction | None = None if handed is None else handed.driver
        self._sequences: dict[TopicPartition, int] = {} if handed is None else dict(handed.sequences)
        self._collected: dict[TopicPartition, list[Columns]] = {}
        self._collected_bytes = 0
        self._keyless = slot
        """Increases with each Arrow batch: rows without a key go to one partition after the other."""
        self.records = 0
        self._slot = slot
        self._two_phase = two_phase
        self._digest = 0
        self._place: Place | None = None

    @property
    def transaction(self) -> Transaction | None:
        """The open transaction; None if nothing was written in one."""
        return self._identity if self._transactional_id is not None else None

    @property
    def part(self) -> Part | None:
        """The open transaction with row count and digest; None if nothing was written in one."""
        if self.transaction is None:
            return None
        return Part(self.transaction, self._slot, self.records, self._digest, self._place)

    async def write(self, batch: pa.RecordBatch) -> None:
        for topic, rows in _by_topic(batch, self._options.topic):
            view = await self._cluster.retrying(partial(self._cluster.topic, topic), topics=[topic])
            numbers = partition_numbers(rows, topic, len(view.partitions), self._keyless)
            self._collect(topic, _columns(rows), numbers)
        self.records += batch.num_rows
        self._collected_bytes += batch.nbytes
        self._keyless += 1
        if self._collected_bytes > _COLLECTED_BYTES_MAX:
            await self.flush()

    def _collect(self, topic: str, columns: Columns, numbers: Numbers) -> None:
        for number in np.unique(numbers).tolist():
            chosen = columns.take(np.flatnonzero(numbers == number))
            self._collected.setdefault(TopicPartition(topic, number), []).append(chosen)

    async def flush(self) -> None:
        """Return when the brokers have acknowledged everything."""
        collected, self._collected, self._collected_bytes = self._collected, {}, 0
        if not collected:
            return
        identity = await self._prepare(collected)
        waiting = {partition: deque(payloads_of(Columns.joined(parts))) for partition, parts in collected.items()}
        while waiting:
            heads = {partition: self._framed(identity, partition, queue[0]) for partition, queue in waiting.items()}
            stored = await deliver(self._cluster, heads, self._transactional_id)
            if self._place is None:
                self._place = next((Place(*partition, offset) for partition, offset in stored.items()), None)
            for partition in heads:
                done = waiting[partition].popleft()
                self._digest += zlib.crc32(done.records, partition.partition)
                self._sequences[partition] = (self._sequences.get(partition, 0) + done.record_count) & _SEQUENCE_MASK
            waiting = {partition: queue for partition, queue in waiting.items() if queue}

    async def flush_with_decision(self, log: CommitLog, decide: Callable[[Part], Decision | None]) -> Handover | None:
        """Send everything and a decision in the driver's transaction; return what the driver needs to commit it.

        `decide` returns the decision for this part. None: nothing was sent, because it returned None, or because a
        partition has more than one batch; the rows are still here."""
        queues = {one: list(payloads_of(Columns.joined(parts))) for one, parts in self._collected.items()}
        identity, part = self._identity, None
        if identity is not None and all(len(queue) == 1 for queue in queues.values()):
            digest = sum(zlib.crc32(queue[0].records, one.partition) for one, queue in queues.items())
            part = Part(identity, self._slot, self.records, digest)
        decision = None if part is None else decide(part)
        if identity is None or decision is None:
            return None
        unanswered = self._cluster.unanswered
        log.continue_at(identity, self._sequences.get(log.partition, 0))
        batches = {one: self._framed(identity, one, queue[0]) for one, queue in queues.items()}
        batches[log.partition] = log.record(decision, identity)
        await add_partitions(self._cluster, identity, batches)
        await deliver(self._cluster, batches, identity.transactional_id)
        counts = {log.partition: 1, **{one: queue[0].record_count for one, queue in queues.items()}}
        for one, count in counts.items():
            self._sequences[one] = (self._sequences.get(one, 0) + count) & _SEQUENCE_MASK
        was_resent = self._cluster.unanswered != unanswered
        return Handover(decision, identity, tuple(self._sequences.items()), was_resent)

    async def abandon(self) -> None:
        """Abort the transaction of this task, if it has begun one. If that fails, the commit of the batch does it."""
        if self.transaction is None:
            return
        try:
            async with asyncio.timeout(_ABANDONED_WITHIN_S):
                await fence(self._cluster, self.transaction)
        except (ClientError, KafkaError, TimeoutError) as error:
            logger.warning("%s stays open for now: %s", self.transaction.transactional_id, error)

    async def _prepare(self, partitions: Iterable[TopicPartition]) -> Transaction:
        if self._identity is None:
            self._identity = await self._begin()
        new = [partition for partition in partitions if partition not in self._sequences]
        if new and self._transactional_id is not None:
            await add_partitions(self._cluster, self._identity, new)
        return self._identity

    async def _begin(self) -> Transaction:
        if self._transactional_id is not None:
            options = self._options
            if not self._two_phase:
                return await begin(self._cluster, self._transactional_id, options.transaction_timeout_ms)
            return await begin_without_timeout(
                self._cluster, options.bootstrap, self._transactional_id, options.transaction_timeout_ms
            )

        async def attempt() -> Transaction:
            connection = await self._cluster.any_connection()
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            response = await connection.request(request, InitProducerIdResponse)
            raise_for(response.error_code, "InitProducerId")
            return Transaction("", response.producer_id, response.producer_epoch)

        return await self._cluster.retrying(attempt)

    def _framed(self, identity: Transaction, partition: TopicPartition, payload: Payload) -> Buffer:
        return framed(
            payload,
            timestamp=self._cluster.clock.now_ms(),
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=self._sequences.get(partition, 0),
            codec=self._codec,
            transactional=bool(identity.transactional_id),
        )


def _by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of an Arrow batch by topic."""
    if topic is not None:
        yield topic, batch
        return
    topics = batch.column("topic")
    if topics.null_count:
        raise ConnectorError("a row has no topic: its topic column is null and the option topic is not set")
    for name in topics.unique().to_pylist():
        yield name, batch.filter(pc.equal(topics, name))


def _columns(rows: pa.RecordBatch) -> Columns:
    headers = headers_column(_headers(rows)) if "headers" in rows.schema.names else no_headers(rows.num_rows)
    return Columns(binary_or_nulls(rows, "key"), binary_or_nulls(rows, "value"), headers)


def _headers(rows: pa.RecordBatch) -> list[Headers]:
    return [
        tuple((header["key"], header["value"]) for header in headers or ())
        for headers in rows.column("headers").to_pylist()
    ]
