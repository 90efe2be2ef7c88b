"""Producer and consumer for programs without an event loop; every call returns when it is done.

    with sskafka.Producer("localhost:9092") as producer:
        producer.send("orders", "customer-7", "3 apples")

    with sskafka.Consumer("localhost:9092") as consumer:
        consumer.subscribe("orders", 0, leader_only=False)
        for record in consumer.poll(100):
            print(record.offset, record.value)

They are the asyncio clients on a thread of their own, which fetches the next records and refreshes metadata while the
program does something else. Threads may share a client: their sends go into common batches.
"""

from collections.abc import Iterable
from typing import TypeVar

from sskafka.client.accumulator import Delivery
from sskafka.client.async_client import DEFAULT_BOOTSTRAP, AsyncClient, Property, Text
from sskafka.client.async_consumer import POLL_RECORDS, START, AsyncConsumer
from sskafka.client.async_producer import AsyncProducer
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.loop_thread import ThreadedClient
from sskafka.client.metadata import ClusterView
from sskafka.model.ids import TopicPartition
from sskafka.records.record import Headers

A = TypeVar("A", bound=AsyncClient)


class SyncClient(ThreadedClient[A]):
    def fetch_cluster_metadata(self) -> ClusterView:
        """Asks any broker: who is there, which topics, who leads their partitions and who is in sync."""
        return self._thread.run(self._client.fetch_cluster_metadata())

    def set_cluster_metadata(self, metadata: ClusterView) -> None:
        """What another client has fetched; it is used until it is too old or turns out to be wrong."""
        self._thread.call(self._client.set_cluster_metadata, metadata)

    fetchClusterMetadata = fetch_cluster_metadata  # noqa: N815
    setClusterMetadata = set_cluster_metadata  # noqa: N815


class Producer(SyncClient[AsyncProducer]):
    """Takes client properties by keyword: `acks`, `linger_ms`, `batch_size`, `compression_type`, ...

    One that waits for every record gains nothing from lingering, so `linger.ms` is 0 unless it is given."""

    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        chosen: dict[str, Property] = {"linger_ms": 0, **properties}
        super().__init__("sskafka-producer", lambda: AsyncProducer(bootstrap_servers, **chosen))

    def send(
        self,
        topic: str,
        key: Text | None,
        value: Text | None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> Delivery:
        """The key decides the partition unless that is given; raises what kept the record from being delivered."""
        send = self._client.send(topic, key, value, partition=partition, headers=headers, timestamp=timestamp)
        return self._thread.run(send)

    def send_batch(
        self, topic: str, key: Text | None, values: Iterable[Text | None], *, partition: int | None = None
    ) -> list[Delivery]:
        """Records with one key, in this order, to one partition."""
        return self._thread.run(self._client.send_batch(topic, key, values, partition=partition))

    sendBatch = send_batch  # noqa: N815


class Consumer(SyncClient[AsyncConsumer]):
    """Takes client properties by keyword: `isolation_level`, `fetch_max_wait_ms`, `max_partition_fetch_bytes`, ..."""

    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        super().__init__("sskafka-consumer", lambda: AsyncConsumer(bootstrap_servers, **properties))

    @property
    def subscriptions(self) -> frozenset[TopicPartition]:
        return self._client.subscriptions

    def subscribe(
        self, topic: str, partition: int | None = None, leader_only: bool = True, *, offset: int = START
    ) -> None:
        """Reads the partition, or all of the topic's, from `offset` on: 0 is the start, -1 the end as it is now.

        `leader_only=False` reads from a replica in sync that is drawn by lot."""
        self._thread.run(self._client.subscribe(topic, partition, leader_only, offset=offset))

    def unsubscribe(self, topic: str, partition: int | None = None) -> None:
        self._thread.call(self._client.unsubscribe, topic, partition)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Goes on at another offset; 0 and -1 mean what they mean in `subscribe`."""
        self._thread.run(self._client.seek(topic, partition, offset))

    def position(self, topic: str, partition: int) -> int:
        """The offset behind the last record that `poll` gave out."""
        return self._client.position(topic, partition)

    def source(self, topic: str, partition: int) -> int:
        """The broker that the partition was last read from when any replica will do; -1 before that."""
        return self._client.source(topic, partition)

    def poll(self, n: int = POLL_RECORDS, *, timeout_ms: int = 1000) -> list[ConsumedRecord]:
        """Up to `n` records, the subscriptions in turn; an empty list when none come within `timeout_ms`."""
        return self._thread.run(self._client.poll(n, timeout_ms=timeout_ms))
