"""The public producer and consumer for programs with an event loop. Each owns a `Cluster`, with its connections and
metadata.

The clients take bootstrap servers and client properties, as `linger_ms=5` or `**{"linger.ms": 5}`.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

from sskafka.client.accumulator import Delivery
from sskafka.client.cluster import Cluster
from sskafka.client.config import (
    ConnectionConfig,
    ConsumerConfig,
    GroupConfig,
    ProducerConfig,
    configured,
    properties_from,
)
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.metadata import MetadataSnapshot
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.client.producer import ProducerEngine
from sskafka.model.ids import TopicPartition
from sskafka.records.record import Headers

if TYPE_CHECKING:
    from sskafka.client.group.group_consumer import GroupConsumer, RebalanceCallback

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
    """Consumer for programs with an event loop. Without a group, the caller subscribes to partitions:

        async with AsyncConsumer("localhost:9092") as consumer:
            await consumer.subscribe("orders", 0, leader_only=False)
            records = await consumer.poll(100)

    With `group_id`, the members of the group share the partitions, and offsets are committed:

        async with AsyncConsumer("localhost:9092", group_id="billing") as consumer:
            await consumer.subscribe(["orders", "refunds"])
            async for record in consumer:
                ...

    Every replica serves records up to the high watermark. If the replica that a partition is read from fails, the next
    poll continues at another replica, at the same offset."""

    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        merged = client_properties({"auto.offset.reset": "earliest"}, properties)
        super().__init__(bootstrap_servers, merged)
        self._consumer = ConsumerEngine(self._cluster, configured(ConsumerConfig, merged))
        group = configured(GroupConfig, merged)
        self._group = self._group_consumer(bootstrap_servers, group) if group.group_id else None

    def _group_consumer(self, bootstrap_servers: str | None, config: GroupConfig) -> "GroupConsumer":
        from sskafka.client.group.group_consumer import GroupConsumer  # noqa: PLC0415  only members of groups need it

        group_cluster = Cluster(bootstrap_servers or (), self._cluster.config)
        return GroupConsumer(self._cluster, group_cluster, self._consumer, config)

    @property
    def is_group_member(self) -> bool:
        """Whether `group.id` is set."""
        return self._group is not None

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the consumer. After an exception in the block, positions are not committed automatically: the records
        may not be processed."""
        await self._close(is_committing=kind is None)

    async def close(self) -> None:
        """Close the consumer. A member of a group commits its positions, unless `enable.auto.commit` is false, and
        leaves the group."""
        await self._close(is_committing=True)

    async def _close(self, *, is_committing: bool) -> None:
        try:
            if self._group is not None:
                await self._group.close(is_committing=is_committing)
        finally:
            await self._consumer.close()
            await super().close()

    def set_cluster_metadata(self, metadata: MetadataSnapshot) -> None:
        """Use metadata that another client fetched, until it expires or a response shows that it is stale."""
        super().set_cluster_metadata(metadata)
        if self._group is not None:
            self._group.adopt(metadata)

    setClusterMetadata = set_cluster_metadata  # noqa: N815

    # Subscriptions

    @property
    def subscriptions(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        return self._consumer.assignment

    assignment = subscriptions

    async def subscribe(
        self,
        topic: "str | Iterable[str] | re.Pattern[str]",
        partition: int | None = None,
        leader_only: bool = True,
        *,
        offset: int = START,
        on_assign: "RebalanceCallback | None" = None,
        on_revoke: "RebalanceCallback | None" = None,
        on_lost: "RebalanceCallback | None" = None,
    ) -> None:
        """Read one partition, or all partitions of the topic, from `offset` on (0: start, -1: current end).

        With `leader_only=False` each partition is read from a random in-sync replica.

        With `group_id`: join the group and share the partitions of topics, or of all topics that a pattern matches (a
        compiled pattern, or a string that starts with `^`). Partitions are read from their committed offsets. `poll`
        calls `on_assign` after partitions were added, `on_revoke` before they are given up, and `on_lost` (default:
        `on_revoke`) if the group has removed this member, so that others may read them already."""
        if self._group is not None:
            if partition is not None or offset != START:
                raise ValueError("a member of a group reads the partitions that the group assigns, as committed")
            from sskafka.client.group.group_consumer import RebalanceCallbacks  # noqa: PLC0415  as above

            callbacks = RebalanceCallbacks(on_assign, on_revoke, on_lost)
            self._group.subscribe(topic, callbacks, any_replica=not leader_only)
            return
        if isinstance(topic, re.Pattern) or on_assign or on_revoke or on_lost:
            raise ValueError("patterns and callbacks need a group: set group_id")
        for name in [topic] if isinstance(topic, str) else topic:
            for chosen, begin in (await self._offsets(await self._partitions(name, partition), offset)).items():
                self._consumer.add(chosen, begin, any_replica=not leader_only)

    def unsubscribe(self, topic: str, partition: int | None = None) -> None:
        """Read these partitions no longer. Members of groups subscribe to other topics instead, or close."""
        if self._group is not None:
            raise ValueError("a member of a group changes its topics with subscribe(), and leaves with close()")
        for chosen in self._subscribed(topic, partition):
            self._consumer.unassign(chosen)

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue at another offset; 0 and -1 have the same meaning as in `subscribe`."""
        if self._group is not None and TopicPartition(topic, partition) not in self._consumer.assignment:
            raise ValueError(f"{TopicPartition(topic, partition)} is not assigned to this member of the group")
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
        """Return up to `n` records, taking turns between partitions; an empty list if none arrive in `timeout_ms`.

        A member of a group has to poll every `max.poll.interval.ms`; otherwise it loses its partitions."""
        if self._group is not None:
            return await self._group.poll(timeout_ms, n)
        return await self._consumer.poll(timeout_ms, n)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumedRecord:
        """Return the next record; wait for it without an end."""
        record = self.take_buffered()
        while record is None:
            record = next(iter(await self.poll(1)), None)
        return record

    def take_buffered(self) -> ConsumedRecord | None:
        """Return a record that is fetched already; None if there is none or a member of a group has to poll."""
        return self._consumer.take_buffered() if self._group is None else self._group.take_buffered()

    # Offsets of the group

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit the positions of all assigned partitions, or these offsets: those of the next records to read.

        Raise CommitFailedError if the group has removed this member or rebalances."""
        await self._member().commit(offsets)

    async def committed(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Return the committed offsets of these partitions, or of those that are assigned. Partitions without a
        committed offset are left out."""
        found = await self._member().committed(partitions)
        return {partition: committed.offset for partition, committed in found.items()}

    def _member(self) -> "GroupConsumer":
        if self._group is None:
            raise ValueError("only members of a group commit offsets: set group_id")
        return self._group


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
