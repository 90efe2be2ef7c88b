"""Producer and consumer for programs without an event loop; every call blocks until it is done.

    with sskafka.Producer("localhost:9092") as producer:
        producer.send("orders", "customer-7", "3 apples")

    with sskafka.Consumer("localhost:9092") as consumer:
        consumer.subscribe("orders", 0, leader_only=False)
        for record in consumer.poll(100):
            print(record.offset, record.value)

Each runs an asyncio client on its own thread, which fetches records and refreshes metadata in the background. Threads
may share a client: their sends go into common batches.
"""

import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sskafka.client.accumulator import Delivery
from sskafka.client.async_clients import (
    DEFAULT_BOOTSTRAP,
    POLL_RECORDS,
    START,
    AsyncClient,
    AsyncConsumer,
    AsyncProducer,
    Property,
    Text,
)
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.loop_thread import ThreadedClient, call_back
from sskafka.client.metadata import MetadataSnapshot
from sskafka.model.ids import TopicPartition
from sskafka.records.record import Headers

if TYPE_CHECKING:
    from sskafka.client.group.group_consumer import RebalanceCallback

A = TypeVar("A", bound=AsyncClient)
SyncCallback: TypeAlias = Callable[[list[TopicPartition]], object]


class SyncClient(ThreadedClient[A]):
    def fetch_cluster_metadata(self) -> MetadataSnapshot:
        """Fetch the brokers, topics, partition leaders and in-sync replicas from any broker."""
        return self._thread.run(self._client.fetch_cluster_metadata())

    def set_cluster_metadata(self, metadata: MetadataSnapshot) -> None:
        """Use metadata that another client fetched, until it expires or a response shows that it is stale."""
        self._thread.call(self._client.set_cluster_metadata, metadata)

    fetchClusterMetadata = fetch_cluster_metadata  # noqa: N815
    setClusterMetadata = set_cluster_metadata  # noqa: N815


class Producer(SyncClient[AsyncProducer]):
    """Client properties are keyword arguments: `acks`, `linger_ms`, `batch_size`, `compression_type`, ...

    `linger.ms` defaults to 0, because a caller that waits for every record gains nothing from lingering."""

    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        merged: dict[str, Property] = {"linger_ms": 0, **properties}
        super().__init__("sskafka-producer", lambda: AsyncProducer(bootstrap_servers, **merged))

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
        """Send one record and return its delivery; raise the error if it could not be delivered.

        Without `partition`, the hash of the key selects the partition."""
        send = self._client.send(topic, key, value, partition=partition, headers=headers, timestamp=timestamp)
        return self._thread.run(send)

    def send_batch(
        self, topic: str, key: Text | None, values: Iterable[Text | None], *, partition: int | None = None
    ) -> list[Delivery]:
        """Send records with one key to one partition, in this order; return when all of them are delivered."""
        return self._thread.run(self._client.send_batch(topic, key, values, partition=partition))

    sendBatch = send_batch  # noqa: N815


class Consumer(SyncClient[AsyncConsumer]):
    """Client properties are keyword arguments: `isolation_level`, `fetch_max_wait_ms`, `fetch_max_bytes`, ...

    With `group_id`, the consumer is a member of a group; `poll` and `close` run its callbacks on the calling thread."""

    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        super().__init__("sskafka-consumer", lambda: AsyncConsumer(bootstrap_servers, **properties))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the consumer. After an exception in the block, positions are not committed automatically: the records
        may not be processed."""
        self._end(lambda: self._client.__aexit__(kind))

    def close(self) -> None:
        """Close the consumer; a second call does nothing. A member of a group commits its positions, unless
        `enable.auto.commit` is false, and leaves the group."""
        self._end(self._client.close)

    def _end(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            if not self._thread.is_closed:
                self._thread.run_with_callbacks(close())
        finally:
            self._thread.close()

    @property
    def subscriptions(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        return self._client.subscriptions

    assignment = subscriptions

    def subscribe(
        self,
        topic: "str | Iterable[str] | re.Pattern[str]",
        partition: int | None = None,
        leader_only: bool = True,
        *,
        offset: int = START,
        on_assign: SyncCallback | None = None,
        on_revoke: SyncCallback | None = None,
        on_lost: SyncCallback | None = None,
    ) -> None:
        """Read one partition, or all partitions of the topic, from `offset` on (0: start, -1: current end).

        With `leader_only=False` each partition is read from a random in-sync replica.

        With `group_id`: join the group and share the partitions of topics, or of all topics that a pattern matches (a
        compiled pattern, or a string that starts with `^`). Partitions are read from their committed offsets. `poll`
        calls `on_assign` after partitions were added, `on_revoke` before they are given up, and `on_lost` (default:
        `on_revoke`) if the group has removed this member, so that others may read them already."""
        self._thread.run(
            self._client.subscribe(
                topic,
                partition,
                leader_only,
                offset=offset,
                on_assign=_on_calling_thread(on_assign),
                on_revoke=_on_calling_thread(on_revoke),
                on_lost=_on_calling_thread(on_lost),
            )
        )

    def unsubscribe(self, topic: str, partition: int | None = None) -> None:
        """Read these partitions no longer. Members of groups subscribe to other topics instead, or close."""
        self._thread.call(self._client.unsubscribe, topic, partition)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue at another offset; 0 and -1 have the same meaning as in `subscribe`."""
        self._thread.run(self._client.seek(topic, partition, offset))

    def position(self, topic: str, partition: int) -> int:
        """Return the offset after the last record that `poll` returned."""
        return self._client.position(topic, partition)

    def source(self, topic: str, partition: int) -> int:
        """Return the replica that the partition is read from; -1 if that is the leader or nothing was read yet."""
        return self._client.source(topic, partition)

    def poll(self, n: int = POLL_RECORDS, *, timeout_ms: int = 1000) -> list[ConsumedRecord]:
        """Return up to `n` records, taking turns between partitions; an empty list if none arrive in `timeout_ms`.

        A member of a group has to poll every `max.poll.interval.ms`; otherwise it loses its partitions."""
        run = self._thread.run_with_callbacks if self._client.is_group_member else self._thread.run
        return run(self._client.poll(n, timeout_ms=timeout_ms))

    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Yield records without an end. One thread at a time may iterate or poll."""
        while True:
            record = self._client.take_buffered()
            if record is not None:
                yield record
            else:
                yield from self.poll(1)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit the positions of all assigned partitions, or these offsets: those of the next records to read.

        Raise CommitFailedError if the group has removed this member or rebalances."""
        self._thread.run(self._client.commit(offsets))

    def committed(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Return the committed offsets of these partitions, or of those that are assigned. Partitions without a
        committed offset are left out."""
        return self._thread.run(self._client.committed(partitions))


def _on_calling_thread(callback: SyncCallback | None) -> "RebalanceCallback | None":
    if callback is None:
        return None
    return lambda partitions: call_back(callback, partitions)
