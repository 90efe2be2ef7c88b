"""ConsumerEngine for programs with an event loop: the caller subscribes to partitions; offsets are not committed.

    async with AsyncConsumer("localhost:9092") as consumer:
        await consumer.subscribe("orders", 0, leader_only=False)
        records = await consumer.poll(100)

Every replica serves records up to the high watermark. If the replica that a partition is read from fails, the next poll
continues at another replica, at the same offset.
"""

from collections.abc import Sequence

from sskafka.client.async_client import DEFAULT_BOOTSTRAP, AsyncClient, Property, client_properties
from sskafka.client.config import ConsumerConfig, configured
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.ids import TopicPartition

START = 0
POLL_RECORDS = 500


class AsyncConsumer(AsyncClient):
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
