"""ProducerEngine for programs with an event loop: `send` returns when the brokers have acknowledged the record.

    async with AsyncProducer("localhost:9092") as producer:
        delivery = await producer.send("orders", "customer-7", b"3 apples")

Concurrent sends share batches. `sskafka.client.producer` does the work: batching, retries, failover, and the sequence
numbers by which brokers detect duplicates.
"""

import asyncio
from collections.abc import Iterable
from typing import Self

from sskafka.client.accumulator import Delivery
from sskafka.client.async_client import DEFAULT_BOOTSTRAP, AsyncClient, Property, Text, as_bytes, client_properties
from sskafka.client.config import ProducerConfig, configured
from sskafka.client.producer import ProducerEngine
from sskafka.records.record import Headers


class AsyncProducer(AsyncClient):
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
