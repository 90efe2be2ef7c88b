"""Access partitions that other brokers lead: the ADR-0011 service is their client over the Kafka protocol.

Records are written by an idempotent producer, so a leader change neither loses nor duplicates them.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig, ProducerConfig
from sskafka.client.connection import BrokerConnection
from sskafka.client.errors import ClientError, is_retriable, raise_for
from sskafka.client.fetched import CompletedFetch
from sskafka.client.fetcher import Position, fetch
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.client.producer import ProducerEngine
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.records.builder import NewRecord
from sskafka.servers.adr.errors import AdrServiceError, InvalidRequestError, NotAppliedError, OutcomeUnknownError
from sskafka.servers.adr.local_partitions import CHUNK_BYTES, Bounds
from sskafka.wire.adr import Produced
from sskafka.wire.messages.flush_logs import FlushLogsRequest, FlushLogsResponse
from sskafka.wire.messages.place_record import PlaceRecordRequest, PlaceRecordResponse
from sskafka.wire.messages.record_counts import RecordCountsRequest, RecordCountsResponse

DELIVERY_TIMEOUT_MS = 15_000
OFFSETS_TIMEOUT_MS = 5_000

_OWN_VERSION = 0
_READING = ConsumerConfig(
    isolation_level="read_committed",
    fetch_min_bytes=0,
    fetch_max_wait_ms=0,
    max_partition_fetch_bytes=CHUNK_BYTES,
)
_WRITING = ProducerConfig(
    linger_ms=0,
    delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
    allow_auto_create_topics=False,
    max_request_size=2**31 - 1,  # the leader enforces the size limit
)


class RemotePartitions:
    """Connects when first needed; `connect` returns the cluster as a client sees it."""

    def __init__(self, connect: Callable[[], Cluster]) -> None:
        self._connect = connect
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: tuple[Cluster, ProducerEngine] | None = None

    async def close(self) -> None:
        self._opened = None
        await self._stack.aclose()

    async def append(self, topic_partition: TopicPartition, record: NewRecord) -> int:
        """Append the record. Return the offset when all in-sync replicas have it."""
        _, producer = await self._open()
        try:
            delivery = await producer.send(
                topic_partition.topic, record.value, key=record.key, partition=topic_partition.partition
            )
            return (await delivery).offset
        except KafkaError as error:
            raise (AdrServiceError if error.retriable else InvalidRequestError)(str(error)) from error
        except ClientError as error:
            raise AdrServiceError(str(error)) from error

    async def place(self, leader: int, topic: str, data: bytes) -> Produced:
        """Let the leader of the topic's partition 0 place a record without a key."""
        cluster, _ = await self._open()
        try:
            connection = await self._connection(cluster, leader)
        except (ClientError, KafkaError) as error:
            raise NotAppliedError(str(error)) from error
        try:
            request = PlaceRecordRequest(topic=topic, data=data)
            answer = await connection.request(request, PlaceRecordResponse, version=_OWN_VERSION)
        except ClientError as error:
            raise OutcomeUnknownError(f"outcome unknown, the record may or may not be stored: {error}") from error
        if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise NotAppliedError(answer.error_message or f"broker {leader} does not lead {topic}-0")
        if answer.error_code != ErrorCode.NONE:
            raise AdrServiceError(answer.error_message or ErrorCode(answer.error_code).name)
        return Produced(answer.offset, answer.partition_index)

    async def record_counts(self, leader: int, topic: str, indexes: Sequence[int]) -> dict[int, int]:
        """Return the counts of the partitions that the broker leads; empty if the broker does not answer."""
        cluster, _ = await self._open()
        request = RecordCountsRequest(topic=topic, partitions=list(indexes))
        try:
            connection = await self._connection(cluster, leader)
            answer = await connection.request(request, RecordCountsResponse, version=_OWN_VERSION)
        except (ClientError, KafkaError):
            return {}
        return {item.partition_index: item.records for item in answer.partitions if item.error_code == ErrorCode.NONE}

    async def bounds(self, partitions: Sequence[TopicPartition]) -> dict[int, Bounds]:
        """Return the bounds by partition."""
        cluster, _ = await self._open()
        deadline_ms = cluster.deadline_ms(OFFSETS_TIMEOUT_MS)
        try:
            first = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST), deadline_ms=deadline_ms)
            last = await list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation=1, deadline_ms=deadline_ms)
        except (ClientError, KafkaError) as error:
            raise NotAppliedError(str(error)) from error
        return {item.partition: (first[item].offset, last[item].offset) for item in partitions}

    async def fetch(self, topic_partition: TopicPartition, offset: int) -> CompletedFetch | None:
        """Return committed records from `offset` on, or from the first available one. None at the end."""
        cluster, _ = await self._open()
        try:
            found = await self._fetch(cluster, topic_partition, offset)
            if found is None:
                earliest = (await list_offsets(cluster, {topic_partition: EARLIEST}))[topic_partition].offset
                found = await self._fetch(cluster, topic_partition, earliest) if offset < earliest else None
        except (ClientError, KafkaError) as error:
            cluster.forget(topic_partition.topic)
            raise (NotAppliedError if is_retriable(error) else AdrServiceError)(str(error)) from error
        return found

    async def _fetch(self, cluster: Cluster, topic_partition: TopicPartition, offset: int) -> CompletedFetch | None:
        leader = (await cluster.leader_of(topic_partition)).leader
        (answer,) = await fetch(cluster, _READING, leader, {topic_partition: Position(offset)})
        data = answer.data
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return None
        raise_for(data.error_code, f"{topic_partition}: {ErrorCode(data.error_code).name}")
        aborted = [(item.first_offset, item.producer_id) for item in data.aborted_transactions or ()]
        return CompletedFetch(topic_partition, data.records or b"", offset, aborted=aborted)

    async def flush(self, broker_id: int) -> None:
        cluster, _ = await self._open()
        try:
            connection = await self._connection(cluster, broker_id)
            answer = await connection.request(FlushLogsRequest(), FlushLogsResponse, version=_OWN_VERSION)
            raise_for(answer.error_code, answer.error_message)
        except (ClientError, KafkaError) as error:
            raise AdrServiceError(f"broker {broker_id} did not flush: {error}") from error

    async def _connection(self, cluster: Cluster, broker_id: int) -> BrokerConnection:
        if broker_id not in cluster.view.brokers:
            await cluster.refresh()
        return await cluster.connection_to(broker_id)

    async def _open(self) -> tuple[Cluster, ProducerEngine]:
        async with self._opening:
            if self._opened is None:
                cluster = await self._stack.enter_async_context(self._connect())
                producer = await self._stack.enter_async_context(ProducerEngine(cluster, _WRITING))
                self._opened = cluster, producer
            return self._opened
