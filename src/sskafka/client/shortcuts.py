"""One-line calls for tests and notebooks: create a topic, write records, read them.

    broker.create_topic("orders", partitions=3)
    broker.produce("orders", "3 apples", "2 pears", key="customer-7")
    assert [record.value for record in broker.consume("orders")] == [b"3 apples", b"2 pears"]

Every call opens a client and closes it again, so none of them is meant for a program that must be fast.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.async_clients import AsyncConsumer, AsyncProducer, Text
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.loop_thread import run_once
from sskafka.client.metadata import PartitionView
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition

TIMEOUT_S = 10.0
_READ_COMMITTED = 1
_POLL_MS = 100


class ClientShortcuts:
    """A subclass returns the properties with which clients connect."""

    def client_properties(self) -> dict[str, str]:
        """Return the properties of a client under Kafka's names, `bootstrap.servers` included."""
        raise NotImplementedError

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic and return when every partition has a leader; `configs` have Kafka's names."""
        texts = {key: str(value) for key, value in (configs or {}).items()}
        run_once(self._create(NewTopic(name, partitions, replication_factor, texts)))

    def produce(self, topic: str, *values: Text | None, key: Text | None = None, partition: int | None = None) -> None:
        """Write the values in this order and return when all of them are acknowledged; None is a tombstone.

        All values have the same key, whose hash selects the partition, unless `partition` names it."""
        run_once(self._produce(topic, key, values, partition))

    def consume(
        self,
        topic: str,
        count: int | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        isolation_level: str = "read_committed",
    ) -> list[ConsumedRecord]:
        """Return the topic's records from the start: the first `count`, or all that are in the topic now.

        Records are in offset order within a partition. Raise TimeoutError if fewer than `count` arrive in time."""
        return run_once(self._consume(topic, count, timeout_s, isolation_level))

    def describe_partition(self, topic: str, partition: int = 0) -> PartitionView:
        """Return the leader, the replicas and the in-sync replicas of a partition."""
        return run_once(self._describe(topic, partition))

    def _cluster(self) -> Cluster:
        properties = self.client_properties()
        return Cluster(properties["bootstrap.servers"], configured(ConnectionConfig, properties))

    def _client_arguments(self) -> tuple[str, dict[str, str]]:
        properties = self.client_properties()
        return properties.pop("bootstrap.servers"), properties

    async def _create(self, topic: NewTopic) -> None:
        async with self._cluster() as cluster:
            outcome = (await Admin(cluster).create_topics([topic]))[topic.name]
            if isinstance(outcome, KafkaError):
                raise outcome
            for number in range(outcome.partitions):
                await cluster.retrying(partial(cluster.leader_of, TopicPartition(topic.name, number)))

    async def _produce(
        self, topic: str, key: Text | None, values: Iterable[Text | None], partition: int | None
    ) -> None:
        servers, properties = self._client_arguments()
        async with AsyncProducer(servers, **properties) as producer:
            await producer.send_batch(topic, key, values, partition=partition)

    async def _consume(
        self, topic: str, count: int | None, timeout_s: float, isolation_level: str
    ) -> list[ConsumedRecord]:
        records: list[ConsumedRecord] = []
        try:
            async with asyncio.timeout(timeout_s):
                await self._collect(records, topic, count, isolation_level)
        except TimeoutError:
            wanted = "all records" if count is None else f"{count} records"
            raise TimeoutError(f"{topic}: {len(records)} of {wanted} arrived in {timeout_s:g} s") from None
        return records

    async def _collect(
        self, records: list[ConsumedRecord], topic: str, count: int | None, isolation_level: str
    ) -> None:
        servers, properties = self._client_arguments()
        ends = await self._ends(topic, isolation_level) if count is None else {}
        async with AsyncConsumer(servers, **{**properties, "isolation.level": isolation_level}) as consumer:
            await consumer.subscribe(topic)
            while _is_behind(consumer, ends) if count is None else len(records) < count:
                polled = await consumer.poll(500 if count is None else count - len(records), timeout_ms=_POLL_MS)
                records += [one for one in polled if count is not None or one.offset < ends[_partition_of(one)]]

    async def _ends(self, topic: str, isolation_level: str) -> dict[TopicPartition, int]:
        isolation = _READ_COMMITTED if isolation_level == "read_committed" else 0
        async with self._cluster() as cluster:
            view = await cluster.retrying(lambda: cluster.topic(topic))
            partitions = {TopicPartition(topic, number): LATEST for number in view.partitions}
            found = await list_offsets(cluster, partitions, isolation=isolation)
            return {partition: end.offset for partition, end in found.items()}

    async def _describe(self, topic: str, partition: int) -> PartitionView:
        async with self._cluster() as cluster:
            return await cluster.retrying(lambda: cluster.partition(TopicPartition(topic, partition)))


def _is_behind(consumer: AsyncConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    return any(consumer.position(partition.topic, partition.partition) < end for partition, end in ends.items())


def _partition_of(record: ConsumedRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
