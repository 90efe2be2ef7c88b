"""Classic groups as the client libraries use them: sharing partitions, leaving, crashing, coming back."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiokafka
import kafka
import pytest
from broker_process import BrokerProcess, StartBroker
from clients import TIMEOUT_S, Message, confluent_consumer, confluent_producer, confluent_send
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from group_fixtures import GROUP_SETTINGS, group_broker
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from waiting import wait_until
from wire_connection import Connection

__all__ = ["group_broker"]

PARTITIONS = 4
SESSION_MS = 2_000

CRASHING_MEMBERS = {
    "confluent-kafka": """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "session.timeout.ms": 2000,
    "heartbeat.interval.ms": 300, "auto.offset.reset": "earliest"})
consumer.subscribe([sys.argv[3]])
while not consumer.assignment():
    consumer.poll(0.1)
print("assigned", flush=True)
while True:
    consumer.poll(0.1)
""",
    "aiokafka": """
import asyncio, sys
from aiokafka import AIOKafkaConsumer
async def run():
    async with AIOKafkaConsumer(sys.argv[3], bootstrap_servers=sys.argv[1], group_id=sys.argv[2],
            session_timeout_ms=2000, heartbeat_interval_ms=300, metadata_max_age_ms=500) as consumer:
        while not consumer.assignment():
            await consumer.getmany(timeout_ms=100)
        print("assigned", flush=True)
        while True:
            await consumer.getmany(timeout_ms=100)
asyncio.run(run())
""",
    "kafka-python": """
import sys
from kafka import KafkaConsumer
consumer = KafkaConsumer(sys.argv[3], bootstrap_servers=sys.argv[1], group_id=sys.argv[2], session_timeout_ms=2000,
    heartbeat_interval_ms=300, metadata_max_age_ms=500)
while not consumer.assignment():
    consumer.poll(1_000)  # kafka-python forgets a rebalance that is under way when a poll runs out of time
print("assigned", flush=True)
while True:
    consumer.poll(1_000)
""",
}


@pytest.fixture
def numbers(group_broker: BrokerProcess, topic: str) -> str:
    """A topic with ten messages in each of its partitions."""
    fill(group_broker.bootstrap, topic)
    return topic


def fill(bootstrap: str, topic: str) -> None:
    with Connection(bootstrap) as connection:
        connection.create_topic(topic, PARTITIONS)
    producer = confluent_producer(bootstrap)
    for partition in range(PARTITIONS):
        confluent_send(producer, topic, [Message(b"%d" % number) for number in range(10)], partition)


def member(bootstrap: str, group: str, topic: str, **config: object) -> Consumer:
    consumer = confluent_consumer(
        bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=300,
        **config,
    )
    consumer.subscribe([topic])
    return consumer


def owned(consumer: Consumer) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}


def poll_until(condition: Callable[[], bool], *consumers: Consumer, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, [owned(consumer) for consumer in consumers]
        for consumer in consumers:
            consumer.poll(0.05)


def share_all(*consumers: Consumer) -> bool:
    """Every partition has one owner, and everybody owns something."""
    shares = [owned(consumer) for consumer in consumers]
    return all(shares) and sum(map(len, shares)) == PARTITIONS and set().union(*shares) == set(range(PARTITIONS))


def close(consumer: Consumer) -> None:
    """Close a consumer in a thread, because no signal interrupts a close() in which librdkafka waits for ever."""
    closing = threading.Thread(target=consumer.close, daemon=True)
    closing.start()
    closing.join(TIMEOUT_S)
    assert not closing.is_alive(), "the consumer does not close"


def read_all(consumer: Consumer, count: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}"
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append((message.partition(), message.offset()))
    return found


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_confluent_members_share_and_take_over(group_broker: BrokerProcess, numbers: str, strategy: str) -> None:
    group = f"{numbers}-{strategy}"
    config = {"partition_assignment_strategy": strategy}
    first = member(group_broker.bootstrap, group, numbers, **config)
    poll_until(lambda: share_all(first), first)
    second = member(group_broker.bootstrap, group, numbers, **config)
    poll_until(lambda: share_all(first, second), first, second)
    close(first)
    poll_until(lambda: share_all(second), second)
    close(second)


@pytest.mark.parametrize("library", CRASHING_MEMBERS)
def test_a_crashed_member_is_replaced_after_its_session(
    group_broker: BrokerProcess, numbers: str, library: str
) -> None:
    """By a member that need not be of the same library."""
    group = f"{numbers}-crash"
    command = [sys.executable, "-W", "ignore", "-c", CRASHING_MEMBERS[library], group_broker.bootstrap, group, numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crashing:
        try:
            assert crashing.stdout is not None
            assert crashing.stdout.readline() == "assigned\n"
            survivor = member(group_broker.bootstrap, group, numbers)
            poll_until(lambda: 0 < len(owned(survivor)) < PARTITIONS, survivor)
        finally:
            crashing.kill()
    poll_until(lambda: share_all(survivor), survivor, timeout_s=SESSION_MS / 1000 + 8)
    survivor.close()


def owned_by_confluent(bootstrap: str, group: str, topic: str) -> set[int]:
    consumer = member(bootstrap, group, topic, group_instance_id="restarts", partition_assignment_strategy="roundrobin")
    poll_until(lambda: bool(owned(consumer)), consumer)
    found = owned(consumer)
    consumer.close()
    return found


def owned_by_aiokafka(bootstrap: str, group: str, topic: str) -> set[int]:
    async def run() -> set[int]:
        async with (
            asyncio.timeout(TIMEOUT_S),
            aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                group_instance_id="restarts",
                session_timeout_ms=10_000,
                metadata_max_age_ms=500,
            ) as consumer,
        ):
            while not consumer.assignment():
                await consumer.getmany(timeout_ms=50)
            return {item.partition for item in consumer.assignment()}

    return asyncio.run(run())


def owned_by_kafka_python(bootstrap: str, group: str, topic: str) -> set[int]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id="restarts",
        session_timeout_ms=10_000,
        metadata_max_age_ms=500,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
    )
    try:
        wait_until(lambda: (consumer.poll(50), consumer.assignment())[1], "it is assigned something")
        return {item.partition for item in consumer.assignment()}
    finally:
        consumer.close()


@contextmanager
def polled(consumer: Consumer) -> Iterator[None]:
    """A member that does its part while others are looked at."""
    stops = threading.Event()

    def run() -> None:
        while not stops.is_set():
            consumer.poll(0.05)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stops.set()
        thread.join(TIMEOUT_S)
        consumer.close()


@pytest.mark.parametrize("joins", [owned_by_confluent, owned_by_aiokafka, owned_by_kafka_python])
def test_a_static_member_comes_back_without_a_rebalance(
    group_broker: BrokerProcess, numbers: str, joins: Callable[[str, str, str], set[int]]
) -> None:
    group = f"{numbers}-static"
    rebalances: list[str] = []
    stays = confluent_consumer(
        group_broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        group_instance_id="stays",
        session_timeout_ms=10_000,
        heartbeat_interval_ms=300,
        partition_assignment_strategy="roundrobin",
    )
    stays.subscribe([numbers], on_revoke=lambda *_: rebalances.append("revoked"))
    poll_until(lambda: share_all(stays), stays)
    with polled(stays):
        before = joins(group_broker.bootstrap, group, numbers)
        assert 0 < len(before) < PARTITIONS
        rebalances.clear()
        assert joins(group_broker.bootstrap, group, numbers) == before
        assert not rebalances


async def committed_by_aiokafka(bootstrap: str, topic: str) -> dict[int, int]:
    async with aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id="g", enable_auto_commit=False
    ) as consumer:
        partitions = [aiokafka.TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        consumer.assign(partitions)
        found = {item.partition: await consumer.committed(item) for item in partitions}
    return {partition: offset for partition, offset in found.items() if offset is not None}


def committed_by_kafka_python(bootstrap: str, topic: str) -> dict[int, int]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id="g", enable_auto_commit=False)
    try:
        found = {number: consumer.committed(kafka.TopicPartition(topic, number)) for number in range(PARTITIONS)}
    finally:
        consumer.close()
    return {partition: offset for partition, offset in found.items() if offset is not None}


def test_offsets_survive_a_restart_and_members_find_their_way_back(start_broker: StartBroker, topic: str) -> None:
    broker = start_broker(GROUP_SETTINGS)
    fill(broker.bootstrap, topic)
    consumer = member(broker.bootstrap, "g", topic)
    read_all(consumer, 25)
    committed = {item.partition: item.offset for item in consumer.commit(asynchronous=False) if item.offset >= 0}
    assert sum(committed.values()) == 25
    port = broker.bootstrap.rsplit(":", 1)[1]
    broker.settings["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
    broker.kill()
    broker.start()
    found = consumer.committed([TopicPartition(topic, partition) for partition in committed], TIMEOUT_S)
    assert {item.partition: item.offset for item in found} == committed
    assert asyncio.run(committed_by_aiokafka(broker.bootstrap, topic)) == committed
    assert committed_by_kafka_python(broker.bootstrap, topic) == committed
    rest = read_all(consumer, PARTITIONS * 10 - 25)
    assert len(set(rest)) == len(rest), "the same member goes on, nothing is read twice"
    assert all(offset >= committed.get(partition, 0) for partition, offset in rest)
    consumer.close()


def test_administrators_see_and_delete_groups(group_broker: BrokerProcess, numbers: str) -> None:
    group = f"{numbers}-admin"
    consumer = member(group_broker.bootstrap, group, numbers)
    poll_until(lambda: share_all(consumer), consumer)
    read_all(consumer, 10)
    consumer.commit(asynchronous=False)
    admin = AdminClient({"bootstrap.servers": group_broker.bootstrap})
    listed = {one.group_id: one.state.name for one in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert listed[group] == "STABLE"
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    (only,) = described.members
    assert {part.partition for part in only.assignment.topic_partitions} == set(range(PARTITIONS))
    consumer.close()
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    assert group not in {one.group_id for one in admin.list_consumer_groups().result(TIMEOUT_S).valid}


def test_aiokafka_members_share_commit_and_leave(group_broker: BrokerProcess, numbers: str) -> None:
    async def run() -> None:
        def consumer() -> aiokafka.AIOKafkaConsumer:
            return aiokafka.AIOKafkaConsumer(
                numbers,
                bootstrap_servers=group_broker.bootstrap,
                group_id=f"{numbers}-aio",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=300,
                metadata_max_age_ms=500,
            )

        async with asyncio.timeout(3 * TIMEOUT_S):
            async with consumer() as first:
                await first.getmany(timeout_ms=2_000)
                async with consumer() as second:
                    while len(first.assignment()) != 2 or len(second.assignment()) != 2:
                        await asyncio.gather(first.getmany(timeout_ms=100), second.getmany(timeout_ms=100))
                    partition = aiokafka.TopicPartition(numbers, next(iter(second.assignment())).partition)
                    await second.commit({partition: (7, "note")})
                while len(first.assignment()) != PARTITIONS:
                    await first.getmany(timeout_ms=100)
                assert await first.committed(partition) == 7

    asyncio.run(run())


def test_kafka_python_members_share_commit_and_leave(group_broker: BrokerProcess, numbers: str) -> None:
    def consumer() -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            numbers,
            bootstrap_servers=group_broker.bootstrap,
            group_id=f"{numbers}-kp",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            metadata_max_age_ms=500,
        )

    # Polls are long: kafka-python forgets a rebalance that is under way when a poll runs out of time.
    first, second = consumer(), consumer()
    try:
        wait_until(lambda: (first.poll(1_000), len(first.assignment()) == PARTITIONS)[1], "the first has everything")

        def is_shared() -> bool:
            first.poll(50)
            second.poll(50)
            return len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2

        wait_until(is_shared, "both have a half")
        partition = next(iter(second.assignment()))
        second.commit({partition: kafka.OffsetAndMetadata(7, "note", -1)})
        second.close()
        wait_until(lambda: (first.poll(1_000), len(first.assignment()) == PARTITIONS)[1], "the first has all again")
        assert first.committed(partition) == 7
    finally:
        first.close()
        second.close()
