"""aiokafka: producing, consuming by assignment, its admin client."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError, MessageSizeTooLargeError, OffsetOutOfRangeError
from clients import aiokafka_take
from wire_connection import Connection

BASE_TIME_MS = 1_700_000_000_000
TIMEOUT_S = 60


def run(steps: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(steps(), TIMEOUT_S))


@asynccontextmanager
async def admin_client(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def send_numbered(bootstrap: str, topic: str, count: int, partition: int = 0, **options: Any) -> list[int]:
    """Sends 0, 1, 2, ... as text, a second apart, and returns their offsets (-1 where nobody tells)."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
        sent = [
            await producer.send(topic, b"%d" % n, partition=partition, timestamp_ms=BASE_TIME_MS + 1000 * n)
            for n in range(count)
        ]
        return [report.offset if report else -1 for report in await asyncio.gather(*sent)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_setting_delivers_in_order(
    bootstrap: str, connection: Connection, topic: str, acks: int | str
) -> None:
    connection.create_topic(topic)

    async def steps() -> None:
        offsets = await send_numbered(bootstrap, topic, 200, acks=acks)
        assert acks == 0 or offsets == list(range(200))
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert [m.value for m in await aiokafka_take(consumer, 200)] == [b"%d" % n for n in range(200)]

    run(steps)


def test_idempotent_producer(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 2)

    async def steps() -> None:
        options = {"enable_idempotence": True, "max_batch_size": 200}
        for partition in (0, 1):
            offsets = await send_numbered(bootstrap, topic, 300, partition, **options)
            assert offsets == list(range(300))

    run(steps)


def test_seek_offsets_and_times(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    partition = TopicPartition(topic, 0)

    async def steps() -> None:
        await send_numbered(bootstrap, topic, 100)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            consumer.assign([partition])
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 100}
            for offset in (70, 3, 99):
                consumer.seek(partition, offset)
                assert (await aiokafka_take(consumer, 1))[0].offset == offset
            assert await consumer.position(partition) == 100
            assert consumer.highwater(partition) == 100
            found = (await consumer.offsets_for_times({partition: BASE_TIME_MS + 41_500}))[partition]
            assert (found.offset, found.timestamp) == (42, BASE_TIME_MS + 42_000)
            assert await consumer.offsets_for_times({partition: BASE_TIME_MS + 99_001}) == {partition: None}
            await consumer.seek_to_beginning()
            assert (await aiokafka_take(consumer, 1))[0].offset == 0
            await consumer.seek_to_end()
            assert await consumer.position(partition) == 100

    run(steps)


def test_long_poll_ends_after_its_time_or_with_a_record(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    async def steps() -> None:
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=300
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert await consumer.getmany(timeout_ms=700) == {}
            waiting = asyncio.create_task(aiokafka_take(consumer, 1))
            began = time.monotonic()
            await send_numbered(bootstrap, topic, 1)
            assert [message.value for message in await waiting] == [b"0"]
            assert time.monotonic() - began < 5

    run(steps)


def test_small_fetches_and_read_committed(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    async def steps() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for n in range(4):
                await producer.send_and_wait(topic, bytes([n]) * 20_000, partition=0)
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=500,
            fetch_max_bytes=500,
            isolation_level="read_committed",
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert [m.value for m in await aiokafka_take(consumer, 4)] == [bytes([n]) * 20_000 for n in range(4)]

    run(steps)


def test_too_large_messages_are_refused(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, max_message_bytes=100_000)

    async def steps() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=10_000_000) as producer:
            assert (await producer.send_and_wait(topic, bytes(99_900), partition=0)).offset == 0
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(topic, bytes(100_000), partition=0)
            assert (await producer.send_and_wait(topic, b"after", partition=0)).offset == 1

    run(steps)


def test_offsets_outside_the_log_are_errors(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    async def steps() -> None:
        await send_numbered(bootstrap, topic, 3)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 50)
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.getone()

    run(steps)


def test_producing_creates_the_topic(bootstrap: str, topic: str) -> None:
    async def steps() -> None:
        assert await send_numbered(bootstrap, topic, 2) == [0, 1]

    run(steps)


def test_admin_topics(bootstrap: str, topic: str) -> None:
    async def steps() -> None:
        async with admin_client(bootstrap) as admin:
            created = await admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "777"})])
            assert created.topic_errors[0][:2] == (topic, 0)
            again = await admin.create_topics([NewTopic(topic, 2, 1)])
            assert again.topic_errors[0][:2] == (topic, 36)
            assert topic in await admin.list_topics()
            await admin.create_partitions({topic: NewPartitions(4)})
            with pytest.raises(InvalidPartitionsError):
                await admin.create_partitions({topic: NewPartitions(1)})
            (described,) = await admin.describe_topics([topic])
            assert sorted(p["partition"] for p in described["partitions"]) == [0, 1, 2, 3]
            deleted = await admin.delete_topics([topic])
            assert list(deleted.topic_error_codes) == [(topic, 0)]
            assert topic not in await admin.list_topics()

    run(steps)


def test_admin_settings(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, segment_bytes=2_000_000)

    async def values(admin: AIOKafkaAdminClient) -> dict[str, str]:
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}

    async def steps() -> None:
        async with admin_client(bootstrap) as admin:
            assert (await values(admin))["segment.bytes"] == "2000000"
            changed = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.bytes": "1000000"})
            (answer,) = await admin.alter_configs([changed])
            assert answer.resources[0][0] == 0
            after = await values(admin)
            # AlterConfigs replaces all that was set before.
            assert (after["retention.bytes"], after["segment.bytes"]) == ("1000000", "1073741824")

    run(steps)


def test_admin_records_and_cluster(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    partition = TopicPartition(topic, 0)

    async def steps() -> None:
        await send_numbered(bootstrap, topic, 10)
        async with admin_client(bootstrap) as admin:
            assert await admin.delete_records({partition: RecordsToDelete(6)}) == {partition: 6}
            cluster = await admin.describe_cluster()
            (broker,) = cluster["brokers"]
            assert f"{broker['host']}:{broker['port']}" == bootstrap
            assert cluster["controller_id"] == broker["node_id"]
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 6}

    run(steps)
