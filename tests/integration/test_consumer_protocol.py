"""Consumer groups of the newer protocol (KIP-848) as librdkafka speaks it, and groups that change their protocol."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from broker_process import BrokerProcess
from clients import TIMEOUT_S, Message, confluent_consumer, confluent_producer, confluent_send
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType
from confluent_kafka.admin import AdminClient
from wire_connection import Connection

PARTITIONS = 4
SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 2_000,
    "group.consumer.min.session.timeout.ms": 2_000,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 200,
}

CRASHING_MEMBER = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "group.protocol": "consumer",
    "auto.offset.reset": "earliest"})
consumer.subscribe([sys.argv[3]])
while not consumer.assignment():
    consumer.poll(0.1)
print("assigned", flush=True)
while True:
    consumer.poll(0.1)
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("consumer-protocol"), SETTINGS)
    try:
        yield process.start()
    finally:
        process.close()
        sys.stderr.write(process.log)


@pytest.fixture
def numbers(broker: BrokerProcess, topic: str) -> str:
    """A topic with ten messages in each of its partitions."""
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(topic, PARTITIONS)
    producer = confluent_producer(broker.bootstrap)
    for partition in range(PARTITIONS):
        confluent_send(producer, topic, [Message(b"%d" % number) for number in range(10)], partition)
    return topic


def member(broker: BrokerProcess, group: str, topic: str, **config: object) -> Consumer:
    consumer = confluent_consumer(
        broker.bootstrap, group_id=group, group_protocol="consumer", auto_offset_reset="earliest", **config
    )
    consumer.subscribe([topic])
    return consumer


def classic_member(broker: BrokerProcess, group: str, topic: str) -> Consumer:
    consumer = confluent_consumer(
        broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=2_000,
        heartbeat_interval_ms=200,
        partition_assignment_strategy="range",
    )
    consumer.subscribe([topic])
    return consumer


def owned(consumer: Consumer) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}


def share_all(*consumers: Consumer) -> bool:
    shares = [owned(consumer) for consumer in consumers]
    return all(shares) and sum(map(len, shares)) == PARTITIONS and set().union(*shares) == set(range(PARTITIONS))


def poll_until(condition: Callable[[], bool], *consumers: Consumer, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, [owned(consumer) for consumer in consumers]
        for consumer in consumers:
            consumer.poll(0.05)


def read_all(consumer: Consumer, count: int) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}"
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.add((message.partition(), message.offset()))
    return found


def test_members_share_and_take_over(broker: BrokerProcess, numbers: str) -> None:
    first = member(broker, numbers, numbers)
    poll_until(lambda: share_all(first), first)
    second = member(broker, numbers, numbers)
    poll_until(lambda: share_all(first, second), first, second)
    first.close()
    poll_until(lambda: share_all(second), second)
    second.close()


def test_what_was_committed_is_not_read_again(broker: BrokerProcess, numbers: str) -> None:
    first = member(broker, numbers, numbers, enable_auto_commit=False)
    assert len(read_all(first, 40)) == 40
    first.commit(asynchronous=False)
    first.close()
    producer = confluent_producer(broker.bootstrap)
    confluent_send(producer, numbers, [Message(b"new")], 2)
    second = member(broker, numbers, numbers)
    assert read_all(second, 1) == {(2, 10)}
    second.close()


def test_a_crashed_member_is_replaced_after_its_session(broker: BrokerProcess, numbers: str) -> None:
    command = [sys.executable, "-c", CRASHING_MEMBER, broker.bootstrap, numbers, numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crashing:
        assert crashing.stdout is not None
        assert crashing.stdout.readline() == "assigned\n"
        survivor = member(broker, numbers, numbers)
        poll_until(lambda: 0 < len(owned(survivor)) < PARTITIONS, survivor)
        crashing.kill()
    poll_until(lambda: share_all(survivor), survivor)
    survivor.close()


def test_a_pattern_finds_a_topic_that_comes_later(broker: BrokerProcess, numbers: str) -> None:
    consumer = member(broker, numbers, f"^{numbers}.*")
    poll_until(lambda: share_all(consumer), consumer)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(f"{numbers}-more", 1)
    poll_until(lambda: len(consumer.assignment()) == PARTITIONS + 1, consumer)
    consumer.close()


def test_administrators_see_the_group(broker: BrokerProcess, numbers: str) -> None:
    consumer = member(broker, numbers, numbers)
    poll_until(lambda: share_all(consumer), consumer)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    listed = {group.group_id: group for group in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert listed[numbers].type == ConsumerGroupType.CONSUMER
    described = admin.describe_consumer_groups([numbers])[numbers].result(TIMEOUT_S)
    assert described.state == ConsumerGroupState.STABLE
    assert {item.partition for item in described.members[0].assignment.topic_partitions} == set(range(PARTITIONS))
    consumer.close()


def test_a_classic_group_changes_protocol_member_by_member_and_back(broker: BrokerProcess, numbers: str) -> None:
    old = classic_member(broker, numbers, numbers)
    poll_until(lambda: share_all(old), old)
    new = member(broker, numbers, numbers)
    poll_until(lambda: share_all(old, new), old, new)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    groups = admin.list_consumer_groups().result(TIMEOUT_S).valid
    assert {group.group_id: group.type for group in groups}[numbers] == ConsumerGroupType.CONSUMER
    new.close()
    poll_until(lambda: share_all(old), old)
    groups = admin.list_consumer_groups().result(TIMEOUT_S).valid
    assert {group.group_id: group.type for group in groups}[numbers] == ConsumerGroupType.CLASSIC
    newest = member(broker, numbers, numbers)
    poll_until(lambda: share_all(old, newest), old, newest)
    old.close()
    poll_until(lambda: share_all(newest), newest)
    newest.close()
