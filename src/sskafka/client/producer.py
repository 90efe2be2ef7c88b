"""Producer: sends records in batches and in order, and returns the offset of each record.

    async with Cluster("localhost:9092") as cluster, Producer(cluster) as producer:
        delivery = await (await producer.send("orders", b"value", key=b"key"))

The hash of the key selects the partition (`partitioner.hash`: Kafka's murmur2, or murmur3). Records without a key stay
with one partition until its batch is closed, then with another (sticky partitioning). A single sender task groups ready
batches by leader, into requests of at most `max.request.size`. At most one batch of a partition is in flight, so
the records of a partition are appended in the order of `send`, even after retries.
"""

import asyncio
import math
import random
from collections.abc import Iterator, Sequence
from typing import Self

from sskafka.client.accumulator import NO_IDENTITY, Accumulator, Delivery, OutgoingBatch, ProducerIdentity
from sskafka.client.backoff import Randomness
from sskafka.client.cluster import UNKNOWN_TOPIC_GRACE_MS, Cluster
from sskafka.client.config import ProducerConfig
from sskafka.client.errors import (
    BrokerUnavailableError,
    ClientError,
    ProducerClosedError,
    RequestTimeoutError,
    UnknownTopicError,
    is_retriable,
    produce_error,
    raise_for,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ZERO_UUID, TopicPartition
from sskafka.records.builder import encoded_size_max
from sskafka.records.compression import Compression
from sskafka.records.partitioner import partition_for_key
from sskafka.records.record import Headers
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sskafka.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_NOT_LEADING = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
}
_REFUSALS = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}
"""Errors that brokers send only before they append. Any other error may follow an append: a leader that is replaced
while it waits for its followers answers NOT_LEADER_OR_FOLLOWER, and the next leader may have the batch."""
_SEQUENCE_MASK = 0x7FFFFFFF


class ProducerEngine:
    def __init__(
        self, cluster: Cluster, config: ProducerConfig | None = None, *, randomness: Randomness | None = None
    ) -> None:
        self.config = config or ProducerConfig()
        self._cluster = cluster
        self._random = randomness or random.Random()
        self._codec = Compression.named(self.config.compression_type)
        self._acks = self.config.required_acks
        self._key_hash = self.config.key_hash
        self._accumulator = Accumulator(self.config.batch_size)
        self._sequences = Sequences()
        self._sticky: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._requests: set[asyncio.Task[None]] = set()
        self._flushing = 0
        self._transaction = 0
        """Number of the open transaction, or of the time between two. Records belong to the one they were sent in."""
        self._sender: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the producer; after an exception in the block, cancel undelivered records without waiting for them."""
        if kind is None:
            await self.close()
        else:
            await self.abort()

    def start(self) -> None:
        assert self._sender is None
        self._sender = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Wait until every record is delivered or has failed, then stop."""
        try:
            await self.flush()
        finally:
            await self.abort()

    async def abort(self) -> None:
        """Stop at once and cancel the futures of records that are not delivered yet."""
        if self._sender is None:
            return
        sender, self._sender = self._sender, None
        for task in (sender, *self._requests):
            task.cancel()
        try:
            await asyncio.gather(sender, *self._requests, return_exceptions=True)
        finally:
            self._accumulator.cancel()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> asyncio.Future[Delivery]:
        """Buffer the record, waiting for `buffer.memory` if necessary, and return the future of its delivery."""
        transaction = self._transaction
        size_bytes = encoded_size_max(key, value, headers)
        if size_bytes > self.config.max_request_size:
            limit = self.config.max_request_size
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"a record of {size_bytes} bytes is larger than max.request.size={limit}"
            )
        while self._accumulator.waiting_bytes and self._is_full(size_bytes):
            await self._until_progress()
        chosen = TopicPartition(topic, await self.choose_partition(topic, key, partition))
        self._running_sender()
        created = self._cluster.clock.now_ms() if timestamp is None else timestamp
        now_ms = self._cluster.clock.monotonic_ms()
        future, began_batch = self._accumulator.append(chosen, key, value, headers, created, now_ms, transaction)
        if began_batch:
            self._wake.set()
        return future

    async def flush(self) -> None:
        """Send all buffered records without lingering; return when each one is delivered or has failed."""
        self._flushing += 1
        self._wake.set()
        try:
            while self._accumulator:
                await self._until_progress()
        finally:
            self._flushing -= 1

    def _is_full(self, size_bytes: int) -> bool:
        return self._accumulator.waiting_bytes + size_bytes > self.config.buffer_memory

    async def _until_progress(self) -> None:
        """Wait until a batch completes; raise if the sender ends."""
        sender = self._running_sender()
        self._progress.clear()
        progress = asyncio.ensure_future(self._progress.wait())
        try:
            await asyncio.wait((progress, sender), return_when=asyncio.FIRST_COMPLETED)
        finally:
            progress.cancel()
        self._running_sender()

    def _running_sender(self) -> asyncio.Task[None]:
        """Return the sender task; raise its exception if it has died, and ProducerClosedError if it was stopped."""
        sender = self._sender
        if sender is None or sender.cancelled():
            raise ProducerClosedError("the producer is closed, or was never started")
        if sender.done():
            sender.result()
        return sender

    # Partitioning

    async def choose_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int:
        """Return `partition`, else the partition of the key, else the sticky partition; may auto-create the topic."""
        count = await self._partition_count(topic)
        if partition is not None:
            return partition
        if key is None:
            return self._sticky_partition(topic, count)
        return partition_for_key(key, count, self._key_hash)

    async def _partition_count(self, topic: str) -> int:
        known = self._cluster.view.topics.get(topic)
        if known is not None and known.partitions:
            return len(known.partitions)
        create = self.config.allow_auto_create_topics
        found = await self._cluster.retrying(lambda: self._cluster.topic(topic, create=create), topics=[topic])
        return len(found.partitions)

    def _sticky_partition(self, topic: str, count: int) -> int:
        chosen = self._sticky.get(topic)
        if chosen is None or self._accumulator.starts_batch(TopicPartition(topic, chosen)):
            chosen = self._sticky[topic] = int(self._random.random() * count)
        return chosen

    # Sending

    async def _run(self) -> None:
        try:
            await self._send_batches()
        except Exception as error:
            self._accumulator.fail(error)
            raise

    async def _send_batches(self) -> None:
        while True:
            self._wake.clear()
            wait_ms = self._until_next_ready()
            if wait_ms != 0:
                await self._wait_for_wake(wait_ms)
                continue
            for leader, batches in (await self._take_ready()).items():
                for portion in self._split_requests(batches):
                    request = asyncio.create_task(self._produce(leader, portion))
                    self._requests.add(request)
                    request.add_done_callback(self._requests.discard)

    def _split_requests(self, batches: Sequence[OutgoingBatch]) -> Iterator[list[OutgoingBatch]]:
        """Split batches into requests of at most `max.request.size`; a single larger batch gets its own request."""
        portion: list[OutgoingBatch] = []
        for batch in batches:
            if portion and sum(one.size_bytes for one in (*portion, batch)) > self.config.max_request_size:
                yield portion
                portion = []
            portion.append(batch)
        yield portion

    async def _wait_for_wake(self, wait_ms: float | None) -> None:
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _until_next_ready(self) -> float | None:
        """Return the milliseconds until the next batch is ready: 0 if one is ready, None if there is no batch."""
        now_ms = self._cluster.clock.monotonic_ms()
        waits = [self._ready_at(batch) - now_ms for batch in self._accumulator.heads()]
        return max(min(waits), 0) if waits else None

    def _ready_at(self, batch: OutgoingBatch) -> float:
        lingers = not (batch.is_closed or self._flushing)
        return max(batch.not_before_ms, batch.created_ms + self.config.linger_ms if lingers else 0)

    async def _take_ready(self) -> dict[int, list[OutgoingBatch]]:
        """Return the ready batches by leader; batches whose leader is unknown are retried later or failed."""
        now_ms = self._cluster.clock.monotonic_ms()
        ready = [batch for batch in self._accumulator.heads() if self._ready_at(batch) <= now_ms]
        for batch in ready:
            batch.is_in_flight = True
        by_leader: dict[int, list[OutgoingBatch]] = {}
        for batch in ready:
            try:
                leader = (await self._cluster.leader_of(batch.partition)).leader
                await self._prepare(batch)  # last: during any await, the identity may be dropped
            except (ClientError, KafkaError) as error:
                self._retry_or_fail(batch, error)
            else:
                batch.is_closed = True
                batch.unknown_since_ms = math.inf
                if self.config.is_idempotent:
                    self._sequences.number(batch)
                by_leader.setdefault(leader, []).append(batch)
        return by_leader

    async def _prepare(self, batch: OutgoingBatch) -> None:
        """Do what must precede the first batch of a partition: here, obtain a producer id."""
        if not self.config.is_idempotent or self._sequences.identity.producer_id >= 0:
            return
        connection = await self._cluster.any_connection()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        response = await connection.request(request, InitProducerIdResponse)
        raise_for(response.error_code, "InitProducerId")
        self._sequences.begin(ProducerIdentity(response.producer_id, response.producer_epoch))

    async def _produce(self, leader: int, batches: Sequence[OutgoingBatch]) -> None:
        """Send one request; afterwards each of its batches is delivered, failed, or waiting for its next attempt."""
        try:
            answers = await self._request(leader, batches)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            for batch in batches:
                self._attempt_failed(batch, error)
        else:
            for batch in batches:
                self._answered(batch, answers.get(batch.partition))
        finally:
            self._wake.set()

    async def _request(
        self, leader: int, batches: Sequence[OutgoingBatch]
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        connection = await self._cluster.connection_to(leader)
        timeout_ms = self._cluster.config.request_timeout_ms
        topics = self._topic_data(batches)
        request, newest = self._produce_request(timeout_ms, topics)
        if self._acks == 0:
            await connection.send(request)
            return {batch.partition: PartitionProduceResponse(base_offset=-1) for batch in batches}
        version = connection.version_for(ProduceRequest, at_most=newest)
        response = await connection.request(request, ProduceResponse, version=version, timeout_ms=timeout_ms)
        names = {topic.topic_id: topic.name for topic in topics}
        return {
            TopicPartition(topic.name or names.get(topic.topic_id, ""), answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }

    def _produce_request(self, timeout_ms: int, data: list[TopicProduceData]) -> tuple[ProduceRequest, int | None]:
        """Return the request and the newest version in which it may be sent (None: any)."""
        return ProduceRequest(acks=self._acks, timeout_ms=timeout_ms, topic_data=data), None

    def _topic_data(self, batches: Sequence[OutgoingBatch]) -> list[TopicProduceData]:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, index = batch.partition
            known = self._cluster.view.topics.get(name)  # another request may have lost it since the leader was found
            topic_id = known.topic_id if known is not None else ZERO_UUID
            topic = topics.setdefault(name, TopicProduceData(name=name, topic_id=topic_id))
            topic.partition_data.append(PartitionProduceData(index=index, records=batch.encoded(self._codec)))
        return list(topics.values())

    # Outcomes

    def _answered(self, batch: OutgoingBatch, answer: PartitionProduceResponse | None) -> None:
        if answer is None:
            self._attempt_failed(batch, RequestTimeoutError(f"the response has no result for {batch.partition}"))
        elif answer.error_code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            batch.succeed(answer.base_offset, answer.log_append_time_ms)
            self._done(batch)
        else:
            self._attempt_failed(batch, produce_error(answer.error_code, answer.error_message, batch.partition))

    def _attempt_failed(self, batch: OutgoingBatch, error: Exception) -> None:
        batch.may_be_stored |= not _is_refusal(error)
        self._retry_or_fail(batch, error)

    def _retry_or_fail(self, batch: OutgoingBatch, error: Exception) -> None:
        now_ms = self._cluster.clock.monotonic_ms()
        batch.is_in_flight = False
        if isinstance(error, ClientError) or (isinstance(error, KafkaError) and error.code in _NOT_LEADING):
            self._cluster.forget(batch.partition.topic)
        if self._may_retry(batch, error, now_ms):
            batch.not_before_ms = now_ms + self._cluster.retry_delay_ms(batch.failures, error)
            batch.failures += 1
            return
        self._settle_sequence(batch, error)
        batch.fail(error)
        self._done(batch)

    def _may_retry(self, batch: OutgoingBatch, error: Exception, now_ms: float) -> bool:
        is_in_time = now_ms < batch.created_ms + self.config.delivery_timeout_ms
        is_passing = is_retriable(error) or self._may_exist_soon(batch, error, now_ms)
        return is_passing and is_in_time and batch.failures < self.config.retries

    def _may_exist_soon(self, batch: OutgoingBatch, error: Exception, now_ms: float) -> bool:
        """Return whether the broker that does not know the topic may only be behind, as in `Cluster.retrying`."""
        if not isinstance(error, UnknownTopicError):
            return False
        batch.unknown_since_ms = min(batch.unknown_since_ms, now_ms)
        return now_ms < batch.unknown_since_ms + UNKNOWN_TOPIC_GRACE_MS

    def _settle_sequence(self, batch: OutgoingBatch, error: Exception) -> None:
        """Decide which sequence follows a batch that has failed with `error`."""
        if batch.may_be_stored:
            self._sequences.abandon(batch)
        else:
            self._sequences.reuse(batch)

    def _done(self, batch: OutgoingBatch) -> None:
        self._accumulator.remove(batch)
        self._progress.set()


def _is_refusal(error: Exception) -> bool:
    """Return whether an attempt that ended with `error` has certainly stored nothing."""
    return isinstance(error, BrokerUnavailableError) or (isinstance(error, KafkaError) and error.code in _REFUSALS)


class Sequences:
    """Sequence numbers, by which brokers detect duplicate batches.

    The state is a producer id and epoch and, for each partition, the sequence of the next record. When a batch is given
    up and it is unknown whether the broker stored it, its sequence numbers can be neither reused nor skipped. The
    producer then needs a new identity, with which all sequences start at 0 again."""

    def __init__(self) -> None:
        self.identity = NO_IDENTITY
        self._next: dict[TopicPartition, int] = {}

    def begin(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self._next.clear()

    def number(self, batch: OutgoingBatch) -> None:
        """Assign the identity and the next sequence to a batch that has none yet."""
        if batch.sequence >= 0:
            return
        assert self.identity.producer_id >= 0
        batch.identity = self.identity
        batch.sequence = self._next.get(batch.partition, 0)
        self._next[batch.partition] = (batch.sequence + len(batch.builder)) & _SEQUENCE_MASK

    def reuse(self, batch: OutgoingBatch) -> None:
        """Give the sequence of a batch that is certainly not stored to the next batch."""
        if batch.identity == self.identity and batch.sequence >= 0:
            self._next[batch.partition] = batch.sequence

    def abandon(self, batch: OutgoingBatch) -> None:
        """Drop the identity, because it is unknown whether the broker stored the batch."""
        if batch.identity == self.identity and batch.sequence >= 0:
            self.begin(NO_IDENTITY)
