"""The wire client against a real broker."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from broker_process import StartBroker

from sskafka.client.admin import Admin, CreatedTopic, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, ConsumerConfig, ProducerConfig
from sskafka.client.configs import Resource, alter_configs, describe_configs
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.errors import NoOffsetForPartitionError
from sskafka.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from sskafka.client.producer import ProducerEngine
from sskafka.model.config_description import ConfigSource
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

T = TypeVar("T")


def run(bootstrap: str, scenario: Callable[[Cluster], Awaitable[T]]) -> T:
    async def work() -> T:
        async with Cluster(bootstrap, ConnectionConfig(retry_backoff_ms=10)) as cluster:
            return await scenario(cluster)

    return asyncio.run(work())


async def create(cluster: Cluster, topic: str, partitions: int = 1) -> None:
    (outcome,) = (await Admin(cluster).create_topics([NewTopic(topic, partitions, 1)])).values()
    assert isinstance(outcome, CreatedTopic), outcome


async def produce(cluster: Cluster, topic: str, *values: bytes, config: ProducerConfig | None = None) -> list[int]:
    async with ProducerEngine(cluster, config) as producer:
        sent = [
            await producer.send(topic, value, partition=0, timestamp=1000 + place) for place, value in enumerate(values)
        ]
        await producer.flush()
        return [future.result().offset for future in sent]


async def consume(consumer: ConsumerEngine, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for record in await consumer.poll(5000)]
    return values


def test_admin(bootstrap: str, topic: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        admin = Admin(cluster)
        await create(cluster, topic, 2)
        repeated, bad = (await admin.create_topics([NewTopic(topic), NewTopic("no good name")])).values()
        assert isinstance(repeated, KafkaError)
        assert repeated.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert isinstance(bad, KafkaError)
        assert bad.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await admin.create_partitions({topic: 3}) == {topic: None}
        described = (await admin.describe_topics([topic]))[topic]
        assert not isinstance(described, KafkaError)
        assert sorted(described.partitions) == [0, 1, 2]
        assert topic in [view.name for view in await admin.list_topics()]
        cluster_view = await admin.describe_cluster()
        assert [broker.broker_id for broker in cluster_view.brokers] == [cluster_view.controller_id]
        (directory,) = await admin.describe_log_dirs(cluster_view.controller_id)
        assert topic in [entry.name for entry in directory.topics]
        assert await admin.delete_topics([topic]) == {topic: None}

    run(bootstrap, scenario)


def test_configs(bootstrap: str, topic: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, topic)
        resource = Resource.topic(topic)
        assert await alter_configs(cluster, {resource: {"retention.ms": "5000"}}) == {resource: None}
        (entry,) = await describe_configs(cluster, resource, ["retention.ms"], documentation=True)
        assert (entry.value, entry.source) == ("5000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        assert await alter_configs(cluster, {resource: {"retention.ms": None}}) == {resource: None}
        (entry,) = await describe_configs(cluster, resource, ["retention.ms"])
        assert entry.source != ConfigSource.DYNAMIC_TOPIC_CONFIG
        outcome = (await alter_configs(cluster, {resource: {"retention.ms": "often"}}))[resource]
        assert outcome is not None
        assert outcome.code is ErrorCode.INVALID_CONFIG
        broker = await describe_configs(cluster, Resource.broker(cluster.view.controller_id))
        assert "log.dirs" in [entry.name for entry in broker]

    run(bootstrap, scenario)


@pytest.mark.parametrize("acks", ["all", "1", "0"])
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_there_and_back(bootstrap: str, topic: str, acks: str, codec: str) -> None:
    values = [b"%d" % number * 10 for number in range(500)]

    async def scenario(cluster: Cluster) -> None:
        await create(cluster, topic)
        config = ProducerConfig(acks=acks, compression_type=codec, batch_size=2000, linger_ms=0)
        offsets = await produce(cluster, topic, *values, config=config)
        assert offsets == ([-1] * 500 if acks == "0" else list(range(500)))
        async with ConsumerEngine(cluster) as consumer:
            consumer.assign({TopicPartition(topic, 0): 0})
            assert await consume(consumer, 500) == values

    run(bootstrap, scenario)


def test_offsets_and_seeking(bootstrap: str, topic: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, topic)
        partition = TopicPartition(topic, 0)
        await produce(cluster, topic, *[b"%d" % number for number in range(10)])
        found = [
            (await list_offsets(cluster, {partition: at}))[partition]
            for at in (EARLIEST, LATEST, MAX_TIMESTAMP, 1004, 9999)
        ]
        assert [offset.offset for offset in found] == [0, 10, 9, 4, -1]
        assert found[3].timestamp == 1004
        assert await Admin(cluster).delete_records({partition: 3}) == {partition: 3}
        async with ConsumerEngine(cluster, ConsumerConfig(auto_offset_reset="earliest")) as consumer:
            consumer.assign({partition: 0})
            assert (await consume(consumer, 7))[0] == b"3"
            await consumer.seek_to_timestamp(1008)
            assert await consume(consumer, 2) == [b"8", b"9"]
        async with ConsumerEngine(cluster) as consumer:
            consumer.assign({partition: 0})
            with pytest.raises(NoOffsetForPartitionError):
                await consumer.poll()

    run(bootstrap, scenario)


def test_a_restart_is_survived_without_loss_or_duplicates(start_broker: StartBroker) -> None:
    """The broker is killed and comes back on the same port, in the middle of producing."""
    broker = start_broker()
    broker.settings["listeners"] = f"PLAINTEXT://{broker.bootstrap}"

    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "t")
        partition = TopicPartition("t", 0)
        async with (
            ProducerEngine(cluster, ProducerConfig(linger_ms=0)) as producer,
            ConsumerEngine(cluster) as consumer,
        ):
            consumer.assign({partition: 0})
            before = [await producer.send("t", b"%d" % number) for number in range(100)]
            await before[0]
            restarted = asyncio.create_task(asyncio.to_thread(broker.restart, unclean=True))
            during = [await producer.send("t", b"%d" % number) for number in range(100, 200)]
            await restarted
            await producer.flush()
            assert [future.result().offset for future in (*before, *during)] == list(range(200))
            assert await consume(consumer, 200) == [b"%d" % number for number in range(200)]

    run(broker.bootstrap, scenario)
