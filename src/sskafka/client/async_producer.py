"""A producer for programs with an event loop: `send` returns when the brokers have the record.

    async with AsyncProducer("localhost:9092") as producer:
        delivery = await producer.send("orders", "customer-7", b"3 apples")

Sends that run side by side share batches. `sskafka.client.producer` does the work: batches, retries, failover and the
numbering by which brokers tell a repetition from a new record.
"""

import asyncio
from collections.abc import Iterable
from typing import Self

from sskafka.client.accumulator import Delivery
from sskafka.client.async_client import DEFAULT_BOOTSTRAP, AsyncClient, Property, Text, as_bytes, stated
from sskafka.client.config import ProducerConfig, configured
from sskafka.client.producer import Producer
from sskafka.records.record import Headers


class AsyncProducer(AsyncClient):
    def __init__(self, bootstrap_servers: str | None = DEFAULT_BOOTSTRAP, **properties: Property) -> None:
        chosen = stated({}, properties)
        super().__init__(bootstrap_servers, chosen)
        self._producer = Producer(self._cluster, configured(ProducerConfig, chosen))

    async def __aenter__(self) -> Self:
        self._producer.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After a failure nobody waits for what is still on its way."""
        if kind is None:
            await self.close()
        else:
            await self._producer.abort()
            await super().close()

    async def close(self) -> None:
        """Waits until everything sent is delivered or has failed."""
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
        """The key decides the partition unless that is given; raises what kept the record from being delivered."""
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
        """Records with one key, in this order, to one partition; returns when all of them are delivered."""
        key = as_bytes(key)
        chosen = await self._producer.choose_partition(topic, key, partition)
        sent = [await self._producer.send(topic, as_bytes(value), key=key, partition=chosen) for value in values]
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, Delivery)]

    sendBatch = send_batch  # noqa: N815
