"""Classic groups as the client libraries use them: sharing partitions, leaving, crashing, coming back."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable

import aiokafka
import kafka
import pytest
from broker_process import BrokerProcess, StartBroker
from clients import TIMEOUT_S, Message, confluent_consumer, confluent_producer, confluent_send
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from group_fixtures import GROUP_SETTINGS, group_broker
from waiting import wait_until
from wire_connection import Connection

__all__ = ["group_broker"]

PARTITIONS = 4
SESSION_MS = 2_000

CRASHING_MEMBER = """
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
"""


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
    first.close()
    poll_until(lambda: share_all(second), second)
    second.close()


def test_a_crashed_member_is_replaced_after_its_session(group_broker: BrokerProcess, numbers: str) -> None:
    command = [sys.executable, "-c", CRASHING_MEMBER, group_broker.bootstrap, f"{numbers}-crash", numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crashing:
        assert crashing.stdout is not None
        assert crashing.stdout.readline() == "assigned\n"
        survivor = member(group_broker.bootstrap, f"{numbers}-crash", numbers)
        poll_until(lambda: 0 < len(owned(survivor)) < PARTITIONS, survivor)
        crashing.kill()
    poll_until(lambda: share_all(survivor), survivor, timeout_s=SESSION_MS / 1000 + 8)
    survivor.close()


def test_a_static_member_comes_back_without_a_rebalance(group_broker: BrokerProcess, numbers: str) -> None:
    group = f"{numbers}-static"
    rebalances: list[str] = []
    stays = confluent_consumer(
        group_broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        group_instance_id="stays",
        session_timeout_ms=10_000,
    )
    stays.subscribe([numbers], on_revoke=lambda *_: rebalances.append("revoked"))
    restarts = member(group_broker.bootstrap, group, numbers, group_instance_id="restarts")
    poll_until(lambda: share_all(stays, restarts), stays, restarts)
    before = owned(restarts)
    rebalances.clear()
    restarts.close()
    restarts = member(group_broker.bootstrap, group, numbers, group_instance_id="restarts")
    poll_until(lambda: bool(owned(restarts)), restarts, stays)
    assert owned(restarts) == before
    assert not rebalances
    restarts.close()
    stays.close()


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

    first, second = consumer(), consumer()
    try:
        wait_until(lambda: (first.poll(100), len(first.assignment()) == PARTITIONS)[1], "the first has everything")

        def is_shared() -> bool:
            first.poll(50)
            second.poll(50)
            return len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2

        wait_until(is_shared, "both have a half")
        partition = next(iter(second.assignment()))
        second.commit({partition: kafka.OffsetAndMetadata(7, "note", -1)})
        second.close()
        wait_until(lambda: (first.poll(100), len(first.assignment()) == PARTITIONS)[1], "the first has all again")
        assert first.committed(partition) == 7
    finally:
        first.close()
        second.close()
