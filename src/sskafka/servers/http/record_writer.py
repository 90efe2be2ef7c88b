"""Storing records for HTTP callers.

    acks 0     handed to the leader's connection, nothing awaited
    acks 1     the leader has them
    acks isr   the in-sync replicas have them: Kafka's acks=-1, idempotent, so that a retry stores nothing twice
    acks all   every replica has them, also those that are down: see replica_wait

Requests that wait together for a partition share a batch. A refusal that surely stored nothing (no leader, another
leader, no connection) is tried again for five seconds; when the connection breaks in between, nobody knows what was
stored, and the caller is told so instead of risking a record twice.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from functools import partial
from typing import NamedTuple, Self

from sskafka.client.accumulator import Delivery
from sskafka.client.cluster import Cluster
from sskafka.client.config import ProducerConfig
from sskafka.client.errors import BrokerUnavailableError, ConnectionLostError, RequestTimeoutError, is_retriable
from sskafka.client.producer import Producer
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.replica_wait import ReplicaWait, StoredRecords

NO_LEADER_TIMEOUT_MS = 5_000
ISR_TIMEOUT_MS = 30_000
BATCH_BYTES = 512 * 1024
NOT_KNOWN = "whether the records are stored is not known"


class Acks(StrEnum):
    NONE = "0"
    LEADER = "1"
    IN_SYNC = "isr"
    ALL = "all"


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None


class MaybeStoredError(Exception):
    """The leader did not answer in time, or no more: the records may be stored or not."""


class RecordWriter:
    """`waiting` is a cluster for requests that wait at the broker."""

    def __init__(self, cluster: Cluster, waiting: Cluster, replicas: ReplicaWait) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._replicas = replicas
        once = partial(ProducerConfig, linger_ms=0, batch_size=BATCH_BYTES, retries=0, allow_auto_create_topics=False)
        self._unacknowledged = Producer(cluster, once(acks="0"))
        self._leader = Producer(cluster, once(acks="1"))
        self._in_sync = Producer(waiting, once(acks="all", retries=2**31 - 1, delivery_timeout_ms=ISR_TIMEOUT_MS))
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self._waiting.close)
        for producer in (self._unacknowledged, self._leader, self._in_sync):
            producer.start()
            self._stack.push_async_callback(producer.abort)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def write(self, partition: TopicPartition, records: Sequence[NewRecord], acks: Acks) -> None:
        """Returns when the records are as safe as `acks` asks for."""
        match acks:
            case Acks.NONE:
                await self._until_led(partition, self._cluster.deadline_ms(NO_LEADER_TIMEOUT_MS))
                for delivery in await _send(self._unacknowledged, partition, records):
                    delivery.add_done_callback(_let_go)
            case Acks.LEADER:
                await self._store(partition, records)
            case Acks.IN_SYNC:
                await self._store_in_sync(partition, records)
            case Acks.ALL:
                while not await self._replicas.until_all_have(await self._store(partition, records)):
                    pass

    async def _store_in_sync(self, partition: TopicPartition, records: Sequence[NewRecord]) -> None:
        await self._until_led(partition, self._cluster.deadline_ms(NO_LEADER_TIMEOUT_MS))
        for outcome in await _outcomes(self._in_sync, partition, records):
            if isinstance(outcome, Exception) and is_retriable(outcome):  # tried for long, and perhaps with success
                raise MaybeStoredError(f"{outcome}: {NOT_KNOWN}") from outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def _store(self, partition: TopicPartition, records: Sequence[NewRecord]) -> StoredRecords:
        deadline_ms = self._cluster.deadline_ms(NO_LEADER_TIMEOUT_MS)
        attempt = 0
        while True:
            topic_id, leader_epoch = await self._until_led(partition, deadline_ms)
            outcomes = await _outcomes(self._leader, partition, records)
            failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            if not failures:
                last_offset = max(outcome.offset for outcome in outcomes if isinstance(outcome, Delivery))
                return StoredRecords(partition, topic_id, last_offset, leader_epoch)
            self._check_worth_retrying(failures[0], deadline_ms)
            pairs = zip(records, outcomes, strict=True)
            records = [record for record, outcome in pairs if isinstance(outcome, BaseException)]
            self._cluster.forget(partition.topic)
            await self._cluster.pause(attempt, deadline_ms)
            attempt += 1

    def _check_worth_retrying(self, error: BaseException, deadline_ms: float) -> None:
        """Raises unless the records were surely not stored and there is time left."""
        if isinstance(error, ConnectionLostError | RequestTimeoutError):
            raise MaybeStoredError(f"{error}: {NOT_KNOWN}") from error
        may_pass = isinstance(error, KafkaError | BrokerUnavailableError) and is_retriable(error)
        if not may_pass or self._cluster.clock.monotonic_ms() >= deadline_ms:
            raise error

    async def _until_led(self, partition: TopicPartition, deadline_ms: float) -> tuple[bytes, int]:
        """The topic's id and the leader epoch, once there is a leader."""
        led = await self._cluster.retrying(
            lambda: self._cluster.leader_of(partition), topics=[partition.topic], deadline_ms=deadline_ms
        )
        return self._cluster.view.topics[partition.topic].topic_id, led.leader_epoch


async def _send(
    producer: Producer, partition: TopicPartition, records: Sequence[NewRecord]
) -> list[asyncio.Future[Delivery]]:
    topic, index = partition
    return [await producer.send(topic, record.value, key=record.key, partition=index) for record in records]


async def _outcomes(
    producer: Producer, partition: TopicPartition, records: Sequence[NewRecord]
) -> list[Delivery | BaseException]:
    return await asyncio.gather(*await _send(producer, partition, records), return_exceptions=True)


def _let_go(delivery: asyncio.Future[Delivery]) -> None:
    """Nobody asked what became of it; looking keeps the loop from complaining about that."""
    if not delivery.cancelled():
        delivery.exception()
