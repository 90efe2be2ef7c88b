"""The wire client's transactions, in both versions: its own, and those that another process began."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from wire_connection import Connection

from sskafka.client import transactions
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, ConsumerConfig, ProducerConfig
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.errors import ConfigError
from sskafka.client.transactional_producer import TransactionalProducer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

T = TypeVar("T")


def run(bootstrap: str, scenario: Callable[[Cluster], Awaitable[T]]) -> T:
    async def work() -> T:
        async with Cluster(bootstrap, ConnectionConfig(retry_backoff_ms=10, retry_backoff_max_ms=100)) as cluster:
            return await asyncio.wait_for(scenario(cluster), 60)

    return asyncio.run(work())


@pytest.fixture(params=[transactions.FIRST_VERSION, transactions.SECOND_VERSION], ids=["first", "second"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """What the cluster has agreed on, as far as the client knows."""

    async def agreed(_: Cluster) -> int:
        return int(request.param)

    monkeypatch.setattr(transactions, "version_of", agreed)
    return int(request.param)


async def committed(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    async with ConsumerEngine(cluster, ConsumerConfig(isolation_level="read_committed")) as consumer:
        consumer.assign({TopicPartition(topic, 0): 0})
        values: list[bytes | None] = []
        while len(values) < count:
            values += [record.value for record in await consumer.poll(5000)]
        return values


def test_blocks_commit_or_abort(bootstrap: str, connection: Connection, topic: str, version: int) -> None:
    connection.create_topic(topic)

    async def scenario(cluster: Cluster) -> None:
        async with TransactionalProducer(cluster, topic) as producer:
            async with producer.transaction():
                await producer.send(topic, b"one")
            with pytest.raises(ZeroDivisionError):
                await fail_within(producer, topic)
            async with producer.transaction():
                await producer.send(topic, b"two")
            async with producer.transaction():
                pass  # nothing was written, nothing is to be ended
        assert await committed(cluster, topic, 2) == [b"one", b"two"]

    run(bootstrap, scenario)


async def fail_within(producer: TransactionalProducer, topic: str) -> None:
    async with producer.transaction():
        await (await producer.send(topic, b"aborted"))
        await producer.send(topic, b"never sent")
        raise ZeroDivisionError


def test_somebody_else_ends_the_transaction(bootstrap: str, connection: Connection, topic: str, version: int) -> None:
    """As the driver of a cluster ends what its tasks have written."""
    connection.create_topic(topic)

    async def begin(cluster: Cluster) -> transactions.Transaction:
        async with TransactionalProducer(cluster, topic) as producer:
            await producer.begin()
            await producer.send(topic, b"handed over")
            return await producer.hand_over()

    async def end(cluster: Cluster) -> None:
        assert (await transactions.describe(cluster, topic)).transaction_state == "Ongoing"
        for _ in range(2):  # a driver that lost the answer asks again
            await transactions.end(cluster, handed, commit=True)
        assert await committed(cluster, topic, 1) == [b"handed over"]
        with pytest.raises(KafkaError) as refused:
            await transactions.end(cluster, handed, commit=False)
        assert refused.value.code is ErrorCode.INVALID_TXN_STATE

    handed = run(bootstrap, begin)
    assert handed.version == version
    run(bootstrap, end)


def test_the_id_is_taken_over(bootstrap: str, connection: Connection, topic: str, version: int) -> None:
    connection.create_topic(topic)

    async def scenario(cluster: Cluster) -> None:
        async with TransactionalProducer(cluster, topic) as older, TransactionalProducer(cluster, topic) as newer:
            await older.begin()
            await (await older.send(topic, b"stolen"))
            async with newer.transaction():
                await newer.send(topic, b"kept")
            with pytest.raises(KafkaError) as fenced:
                await older.commit()
            assert fenced.value.code is ErrorCode.PRODUCER_FENCED
        assert await committed(cluster, topic, 1) == [b"kept"]

    run(bootstrap, scenario)


def test_offsets_go_with_the_transaction(bootstrap: str, connection: Connection, topic: str, version: int) -> None:
    connection.create_topic(topic)

    async def scenario(cluster: Cluster) -> None:
        async with TransactionalProducer(cluster, topic) as producer:
            async with producer.transaction():
                await producer.send(topic, b"x")
                await producer.send_offsets(topic, {TopicPartition(topic, 0): 7})
            listed = await transactions.list_transactions(cluster, ["PrepareCommit", "CompleteCommit"])
            assert topic in [item.transactional_id for item in listed]

    run(bootstrap, scenario)


def test_nothing_is_sent_outside_of_a_transaction(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    async def scenario(cluster: Cluster) -> None:
        async with TransactionalProducer(cluster, topic) as producer:
            future = await producer.send(topic, b"stray")
            await producer.flush()
            with pytest.raises(KafkaError):
                future.result()
            await producer.begin()
            with pytest.raises(KafkaError):
                await producer.begin()
        with pytest.raises(ConfigError):
            TransactionalProducer(cluster, topic, ProducerConfig(acks="1"))

    run(bootstrap, scenario)
