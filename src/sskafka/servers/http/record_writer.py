"""Store records for HTTP callers.

    acks 0     written to the leader's connection without waiting
    acks 1     the leader has them
    acks isr   the in-sync replicas have them: Kafka's acks=-1, idempotent, so that a retry stores nothing twice
    acks all   every replica has them, also those that are down: see replica_wait

Errors after which the records are certainly not stored (no leader, another leader, no connection) are retried for five
seconds. If the connection breaks in between, the outcome is unknown: the caller is told so, and no retry risks a
duplicate.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import NamedTuple, Self

from sskafka.client.accumulator import Delivery
from sskafka.client.cluster import Cluster
from sskafka.client.config import ProducerConfig
from sskafka.client.errors import (
    BrokerUnavailableError,
    ConnectionLostError,
    RequestTimeoutError,
    is_retriable,
    produce_error,
)
from sskafka.client.producer import ProducerEngine
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition, Uuid
from sskafka.records.batch import NO_TIMESTAMP
from sskafka.records.builder import BatchBuilder, NewRecord, encoded_size_max
from sskafka.servers.http.replica_wait import ReplicaWait, StoredRecords
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

NO_LEADER_TIMEOUT_MS = 5_000
ISR_TIMEOUT_MS = 30_000
NOT_KNOWN = "the records may or may not be stored"
BATCH_BYTES = 512 * 1024


class BuiltBatch(NamedTuple):
    data: bytearray
    records: int


def batches_of(records: Sequence[NewRecord], now_ms: int) -> Iterator[BuiltBatch]:
    """Yield batches in order, each within BATCH_BYTES unless a single record is larger."""
    builder, count = BatchBuilder(), 0
    for record in records:
        if count and builder.size_bytes + encoded_size_max(record.key, record.value, ()) > BATCH_BYTES:
            yield BuiltBatch(builder.build(), count)
            builder, count = BatchBuilder(), 0
        builder.append(record.key, record.value, (), now_ms)
        count += 1
    yield BuiltBatch(builder.build(), count)


async def append(cluster: Cluster, partition: TopicPartition, batch: BuiltBatch) -> int:
    """Append the batch. Return the offset of the last record once the leader has it.

    Nothing is retried here: the caller decides what a failure means for the records."""
    connection = await cluster.connection_to((await cluster.leader_of(partition)).leader)
    response = await connection.request(_request(cluster, partition, batch, acks=1), ProduceResponse)
    answers = [answer for topic in response.responses for answer in topic.partition_responses]
    if not answers:
        raise RequestTimeoutError(f"the leader did not answer for {partition}")
    if answers[0].error_code != ErrorCode.NONE:
        raise produce_error(answers[0].error_code, answers[0].error_message, partition)
    return answers[0].base_offset + batch.records - 1


async def hand_over(cluster: Cluster, partition: TopicPartition, batch: BuiltBatch) -> None:
    """Write the batch to the leader's connection without waiting for the outcome."""
    connection = await cluster.connection_to((await cluster.leader_of(partition)).leader)
    await connection.send(_request(cluster, partition, batch, acks=0))


def _request(cluster: Cluster, partition: TopicPartition, batch: BuiltBatch, acks: int) -> ProduceRequest:
    topic_id = cluster.view.topics[partition.topic].topic_id
    data = [PartitionProduceData(partition.partition, batch.data)]
    return ProduceRequest(
        acks=acks,
        timeout_ms=cluster.config.request_timeout_ms,
        topic_data=[TopicProduceData(name=partition.topic, topic_id=topic_id, partition_data=data)],
    )


class Acks(StrEnum):
    NONE = "0"
    LEADER = "1"
    IN_SYNC = "isr"
    ALL = "all"


class MaybeStoredError(Exception):
    """The leader did not answer in time: the records may or may not be stored."""


class RecordWriter:
    """`waiting` is a cluster for requests that wait at the broker."""

    def __init__(self, cluster: Cluster, waiting: Cluster, replicas: ReplicaWait) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._replicas = replicas
        config = ProducerConfig(
            linger_ms=0, batch_size=BATCH_BYTES, delivery_timeout_ms=ISR_TIMEOUT_MS, allow_auto_create_topics=False
        )
        self._in_sync = ProducerEngine(waiting, config)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self._waiting.close)
        self._in_sync.start()
        self._stack.push_async_callback(self._in_sync.abort)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def write(self, partition: TopicPartition, records: Sequence[NewRecord], acks: Acks) -> None:
        """Store the records in order, batch by batch. Return when they are as durable as `acks` requires."""
        if acks is Acks.IN_SYNC:
            await self._store_in_sync(partition, records)
            return
        for batch in batches_of(records, self._cluster.clock.now_ms()):
            match acks:
                case Acks.NONE:
                    await self._until_led(partition, self._cluster.deadline_ms(NO_LEADER_TIMEOUT_MS))
                    await hand_over(self._cluster, partition, batch)
                case Acks.LEADER:
                    await self._store(partition, batch)
                case Acks.ALL:
                    while not await self._replicas.until_all_have(await self._store(partition, batch)):
                        pass

    async def _store_in_sync(self, partition: TopicPartition, records: Sequence[NewRecord]) -> None:
        await self._until_led(partition, self._cluster.deadline_ms(NO_LEADER_TIMEOUT_MS))
        topic, index = partition
        sent = [await self._in_sync.send(topic, record.value, key=record.key, partition=index) for record in records]
        for outcome in await asyncio.gather(*sent, return_exceptions=True):
            _checked(outcome)

    async def send(self, topic: str, record: NewRecord, partition: int | None = None) -> Delivery:
        """Store one record with its headers as `isr` does. Its key chooses the partition unless one is given."""
        number = await self._in_sync.choose_partition(topic, record.key, partition)
        await self._until_led(TopicPartition(topic, number), self._cluster.deadline_ms(NO_LEADER_TIMEOUT_MS))
        sent = await self._in_sync.send(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=number,
            timestamp=None if record.timestamp == NO_TIMESTAMP else record.timestamp,
        )
        (outcome,) = await asyncio.gather(sent, return_exceptions=True)
        return _checked(outcome)

    async def _store(self, partition: TopicPartition, batch: BuiltBatch) -> StoredRecords:
        deadline_ms = self._cluster.deadline_ms(NO_LEADER_TIMEOUT_MS)
        attempt = 0
        while True:
            topic_id, leader_epoch = await self._until_led(partition, deadline_ms)
            try:
                last_offset = await append(self._cluster, partition, batch)
            except Exception as error:
                self._check_worth_retrying(error, deadline_ms)
                failure = error
            else:
                return StoredRecords(partition, topic_id, last_offset, leader_epoch)
            self._cluster.forget(partition.topic)
            await self._cluster.pause(attempt, deadline_ms, failure)
            attempt += 1

    def _check_worth_retrying(self, error: Exception, deadline_ms: float) -> None:
        """Raise unless the records are certainly not stored and there is time left."""
        if isinstance(error, ConnectionLostError | RequestTimeoutError):
            raise MaybeStoredError(f"{error}: {NOT_KNOWN}") from error
        may_pass = isinstance(error, KafkaError | BrokerUnavailableError) and is_retriable(error)
        if not may_pass or self._cluster.clock.monotonic_ms() >= deadline_ms:
            raise error

    async def _until_led(self, partition: TopicPartition, deadline_ms: float) -> tuple[Uuid, int]:
        """Return the topic's id and the leader epoch once there is a leader."""
        led = await self._cluster.retrying(
            lambda: self._cluster.leader_of(partition), topics=[partition.topic], deadline_ms=deadline_ms
        )
        return self._cluster.view.topics[partition.topic].topic_id, led.leader_epoch


def _checked(outcome: Delivery | BaseException) -> Delivery:
    """Return a delivery. Raise MaybeStoredError for a failure that was retried for long, perhaps with success."""
    if isinstance(outcome, Exception) and is_retriable(outcome):
        raise MaybeStoredError(f"{outcome}: {NOT_KNOWN}") from outcome
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
