"""The public producer and consumer for programs with an event loop. Each owns a `Cluster`, with its connections and
metadata.

The clients take bootstrap servers and client properties, as `linger_ms=5` or `**{"linger.ms": 5}`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Self, TypeAlias

from sskafka.client.accumulator import Delivery
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, ConsumerConfig, ProducerConfig, configured, properties_from
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.metadata import MetadataSnapshot
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.client.producer import ProducerEngine
from sskafka.model.ids import TopicPartition
from sskafka.records.record import Headers

DEFAULT_BOOTSTRAP = "localhost:9092"

Property: TypeAlias = str | int | bool
Text: TypeAlias = bytes | str
"""Keys and values; `str` is encoded as UTF-8."""
START = 0
POLL_RECORDS = 500


def as_bytes(text: Text | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


class AsyncClient:
    """`bootstrap_servers` may be None if the client receives its metadata through `set_cluster_metadata`."""

    def __init__(self, bootstrap_servers: str | None, properties: Mapping[str, str]) -> None:
        self._cluster = Cluster(bootstrap_servers or (), configured(ConnectionConfig, properties))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._cluster.close()

    async def fetch_cluster_metadata(self) -> MetadataSnapshot:
        """Fetch the brokers, topics, partition leaders and in-sync replicas from any broker."""
        return await self._cluster.retrying(lambda: self._cluster.refresh(None))

    def set_cluster_metadata(self, metadata: MetadataSnapshot) -> None:
        """Use metadata that another client fetched, until it expires or a response shows that it is stale."""
        self._cluster.adopt(metadata)

    fetchClusterMetadata = fetch_cluster_metadata  # noqa: N815
    setClusterMetadata = set_cluster_metadata  # noqa: N815


def client_properties(defaults: Mapping[str, Property], options: Mapping[str, Property]) -> dict[str, str]:
    """Return the defaults of a client, overridden by the options of its user, as properties."""
    return {**properties_from(defaults), **properties_from(options)}


class AsyncConsumer(AsyncClient):
    """Consumer for programs with an event loop: the caller subscribes to partitions; offsets are not committed.

        async with AsyncConsumer("localhost:9092") as consumer:
            await consumer.subscribe("orders", 0, leader_only=False)
            records = await consumer.poll(100)

    Every replica serves records up to the high watermark. If the replica that a partition is read from fails, the next
    poll continues at another replica, at the same offset."""

    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        merged = client_properties({"auto.offset.reset": "earliest"}, properties)
        super().__init__(bootstrap_servers, merged)
        self._consumer = ConsumerEngine(self._cluster, configured(ConsumerConfig, merged))

    async def close(self) -> None:
        await self._consumer.close()
        await super().close()

    # Subscriptions

    @property
    def subscriptions(self) -> frozenset[TopicPartition]:
        return self._consumer.assignment

    async def subscribe(
        self, topic: str, partition: int | None = None, leader_only: bool = True, *, offset: int = START
    ) -> None:
        """Read one partition, or all partitions of the topic, from `offset` on (0: start, -1: current end).

        With `leader_only=False` each partition is read from a random in-sync replica."""
        for chosen, begin in (await self._offsets(await self._partitions(topic, partition), offset)).items():
            self._consumer.add(chosen, begin, any_replica=not leader_only)

    def unsubscribe(self, topic: str, partition: int | None = None) -> None:
        for chosen in self._subscribed(topic, partition):
            self._consumer.unassign(chosen)

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue at another offset; 0 and -1 have the same meaning as in `subscribe`."""
        for chosen, begin in (await self._offsets([TopicPartition(topic, partition)], offset)).items():
            self._consumer.seek(chosen, begin)

    def position(self, topic: str, partition: int) -> int:
        """Return the offset after the last record that `poll` returned."""
        return self._consumer.position(TopicPartition(topic, partition))

    def source(self, topic: str, partition: int) -> int:
        """Return the replica that the partition is read from; -1 if that is the leader or nothing was read yet."""
        return self._consumer.source(TopicPartition(topic, partition))

    async def _partitions(self, topic: str, partition: int | None) -> list[TopicPartition]:
        if partition is not None:
            chosen = TopicPartition(topic, partition)
            await self._cluster.retrying(lambda: self._cluster.partition(chosen), topics=[topic])
            return [chosen]
        found = await self._cluster.retrying(lambda: self._cluster.topic(topic), topics=[topic])
        return [TopicPartition(topic, number) for number in sorted(found.partitions)]

    async def _offsets(self, partitions: Sequence[TopicPartition], offset: int) -> dict[TopicPartition, int]:
        if offset >= START:
            return dict.fromkeys(partitions, offset)
        if offset not in {LATEST, EARLIEST}:
            raise ValueError(f"invalid offset {offset}: use 0 for the start or -1 for the end")
        isolation = self._consumer.config.isolation
        found = await list_offsets(self._cluster, dict.fromkeys(partitions, offset), isolation=isolation)
        return {partition: offset_found.offset for partition, offset_found in found.items()}

    def _subscribed(self, topic: str, partition: int | None) -> list[TopicPartition]:
        return [
            chosen
            for chosen in self._consumer.assignment
            if chosen.topic == topic and partition in {None, chosen.partition}
        ]

    # Reading

    async def poll(self, n: int = POLL_RECORDS, *, timeout_ms: int = 1000) -> list[ConsumedRecord]:
        """Return up to `n` records, taking turns between partitions; an empty list if none arrive in `timeout_ms`."""
        return await self._consumer.poll(timeout_ms, n)


class AsyncProducer(AsyncClient):
    """Producer for programs with an event loop: `send` returns when the brokers have acknowledged the record.

        async with AsyncProducer("localhost:9092") as producer:
            delivery = await producer.send("orders", "customer-7", b"3 apples")

    Concurrent sends share batches. `sskafka.client.producer` does the work: batching, retries, failover, and the
    sequence numbers by which brokers detect duplicates."""

    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        merged = client_properties({}, properties)
        super().__init__(bootstrap_servers, merged)
        self._producer = ProducerEngine(self._cluster, configured(ProducerConfig, merged))

    async def __aenter__(self) -> Self:
        self._producer.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the producer; after an exception in the block, cancel undelivered records without waiting for them."""
        if kind is None:
            await self.close()
        else:
            await self._producer.abort()
            await super().close()

    async def close(self) -> None:
        """Wait until every record is delivered or has failed, then close the connections."""
        try:
            await self._producer.close()
        finally:
            await super().close()

    async def send(
        self,
        topic: str,
        key: Text | None,
        value: Text | None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> Delivery:
        """Send one record and return its delivery; raise the error if it could not be delivered.

        Without `partition`, the hash of the key selects the partition."""
        delivery = await self._producer.send(
            topic,
            as_bytes(value),
            key=as_bytes(key),
            headers=headers,
            partition=partition,
            timestamp=timestamp,
        )
        return await delivery

    async def send_batch(
        self, topic: str, key: Text | None, values: Iterable[Text | None], *, partition: int | None = None
    ) -> list[Delivery]:
        """Send records with one key to one partition, in this order; return when all of them are delivered."""
        key = as_bytes(key)
        chosen = await self._producer.choose_partition(topic, key, partition)
        sent = [await self._producer.send(topic, as_bytes(value), key=key, partition=chosen) for value in values]
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, Delivery)]

    sendBatch = send_batch  # noqa: N815
