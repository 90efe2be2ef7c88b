"""A consumer for programs with an event loop: it subscribes to partitions and keeps its own offsets.

    async with AsyncConsumer("localhost:9092") as consumer:
        await consumer.subscribe("orders", 0, leader_only=False)
        records = await consumer.poll(100)

Replicas serve what is committed, up to the same offset everywhere; when the one that is read from fails, the next poll
goes on at another one, at the same offset.
"""

from collections.abc import Sequence

from sskafka.client.async_client import DEFAULT_BOOTSTRAP, AsyncClient, Property, stated
from sskafka.client.config import ConsumerConfig, configured
from sskafka.client.consumer import Consumer
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.ids import TopicPartition

START = 0
POLL_RECORDS = 500


class AsyncConsumer(AsyncClient):
    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        chosen = stated({"auto.offset.reset": "earliest"}, properties)
        super().__init__(bootstrap_servers, chosen)
        self._consumer = Consumer(self._cluster, configured(ConsumerConfig, chosen))

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
        """Reads the partition, or all of the topic's, from `offset` on: 0 is the start, -1 the end as it is now.

        `leader_only=False` reads from a replica in sync that is drawn by lot."""
        for chosen, begin in (await self._offsets(await self._partitions(topic, partition), offset)).items():
            self._consumer.add(chosen, begin, any_replica=not leader_only)

    def unsubscribe(self, topic: str, partition: int | None = None) -> None:
        for chosen in self._subscribed(topic, partition):
            self._consumer.unassign(chosen)

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        """Goes on at another offset; 0 and -1 mean what they mean in `subscribe`."""
        for chosen, begin in (await self._offsets([TopicPartition(topic, partition)], offset)).items():
            self._consumer.seek(chosen, begin)

    def position(self, topic: str, partition: int) -> int:
        """The offset behind the last record that `poll` gave out."""
        return self._consumer.position(TopicPartition(topic, partition))

    def source(self, topic: str, partition: int) -> int:
        """The broker that the partition was last read from when any replica will do; -1 before that."""
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
            raise ValueError(f"there is no offset {offset}: 0 is the start, -1 the end")
        isolation = self._consumer.config.isolation
        found = await list_offsets(self._cluster, dict.fromkeys(partitions, offset), isolation=isolation)
        return {partition: place.offset for partition, place in found.items()}

    def _subscribed(self, topic: str, partition: int | None) -> list[TopicPartition]:
        return [
            chosen
            for chosen in self._consumer.assignment
            if chosen.topic == topic and partition in {None, chosen.partition}
        ]

    # Reading

    async def poll(self, n: int = POLL_RECORDS, *, timeout_ms: int = 1000) -> list[ConsumedRecord]:
        """Up to `n` records, the subscriptions in turn; an empty list when none come within `timeout_ms`."""
        return await self._consumer.poll(timeout_ms, n)
