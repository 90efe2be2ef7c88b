"""aiokafka: transactions with the oldest versions of the requests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced
from wire_connection import Connection

TIMEOUT_S = 60


def run(steps: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(steps(), TIMEOUT_S))


@asynccontextmanager
async def transactional(bootstrap: str, transactional_id: str) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def read(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation, fetch_max_wait_ms=100)
    await consumer.start()
    partition = TopicPartition(topic, 0)
    try:
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()


def test_committed_and_aborted_transactions(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    async def steps() -> None:
        async with transactional(bootstrap, topic) as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"first")
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait(topic, b"second")
        assert await read(bootstrap, topic, 2) == [b"first", b"second"]
        assert await read(bootstrap, topic, 3, "read_uncommitted") == [b"first", b"aborted", b"second"]

    run(steps)


def test_a_newer_producer_fences_the_older(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    async def steps() -> None:
        async with transactional(bootstrap, topic) as older:
            await older.begin_transaction()
            await older.send_and_wait(topic, b"stolen")
            async with transactional(bootstrap, topic) as newer, newer.transaction():
                await newer.send_and_wait(topic, b"kept")
            with pytest.raises(ProducerFenced):
                await older.commit_transaction()
        assert await read(bootstrap, topic, 1) == [b"kept"]

    run(steps)


def test_offsets_go_with_the_transaction(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    async def steps() -> None:
        partition = TopicPartition(topic, 0)
        async with transactional(bootstrap, topic) as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"x")
                await producer.send_offsets_to_transaction({partition: 1}, topic)
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({partition: 9}, topic)
            await producer.abort_transaction()
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False)
        await consumer.start()
        try:
            consumer.assign([partition])
            assert await consumer.committed(partition) == 1
        finally:
            await consumer.stop()

    run(steps)
