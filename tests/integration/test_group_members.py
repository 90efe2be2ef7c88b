"""`sskafka.Consumer` as a member of groups, by both protocols, against a real broker."""

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

import sskafka
from sskafka.client.errors import (
    BrokerUnavailableError,
    CommitFailedError,
    ConfigError,
    NobodyListensError,
    NoOffsetForPartitionError,
)
from sskafka.client.fetched import ConsumedRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

pytestmark = pytest.mark.usefixtures("_ours")

PROTOCOLS = {
    "classic": {"group_protocol": "classic", "partition_assignment_strategy": "range"},
    "cooperative": {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky"},
    "consumer": {"group_protocol": "consumer"},
}
LIMIT_S = 20
KILLED_MEMBER = """
import sys, sskafka
servers, topic, group, protocol = sys.argv[1:]
consumer = sskafka.Consumer(servers, group_id=group, group_protocol=protocol, session_timeout_ms=1000,
                            heartbeat_interval_ms=100, enable_auto_commit=False)
consumer.subscribe(topic)
while True:
    for record in consumer.poll(10, timeout_ms=100):
        print(record.value.decode(), flush=True)
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[sskafka.Broker]:
    settings = {
        "group.min.session.timeout.ms": 500,
        "group.consumer.min.session.timeout.ms": 500,
        "group.consumer.session.timeout.ms": 1000,
        "group.consumer.min.heartbeat.interval.ms": 50,
        "group.consumer.heartbeat.interval.ms": 50,
        "group.consumer.assignment.interval.ms": 0,
        "group.consumer.min.assignment.interval.ms": 0,
    }
    with sskafka.Broker(settings) as broker:
        yield broker


class Member:
    """A consumer with a log of its callbacks and of what it has read."""

    def __init__(self, broker: sskafka.Broker, name: str = "", **properties: Any) -> None:
        defaults: dict[str, Any] = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 50, "fetch_max_wait_ms": 50}
        self.consumer = sskafka.Consumer(broker.bootstrap_servers, **{**defaults, **properties})
        self.name = name
        self.events: list[tuple[str, list[int]]] = []
        self.records: list[ConsumedRecord] = []

    def subscribe(self, topics: Any, **options: Any) -> "Member":
        callbacks = {name: partial(self._note, name) for name in ("on_assign", "on_revoke", "on_lost")}
        self.consumer.subscribe(topics, **{**callbacks, **options})
        return self

    def _note(self, event: str, partitions: list[TopicPartition]) -> None:
        self.events.append((event, [partition.partition for partition in partitions]))

    @property
    def partitions(self) -> set[int]:
        return {partition.partition for partition in self.consumer.assignment}

    def poll(self, timeout_ms: int = 20) -> None:
        polled = self.consumer.poll(25, timeout_ms=timeout_ms)
        owned = self.consumer.assignment
        assert all(TopicPartition(record.topic, record.partition) in owned for record in polled)
        self.records += polled


@pytest.fixture
def member(broker: sskafka.Broker) -> Iterator[Callable[..., Member]]:
    with ExitStack() as stack:

        def make(**properties: Any) -> Member:
            made = Member(broker, **properties)
            stack.callback(made.consumer.close)
            return made

        yield make


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> dict[str, str]:
    return PROTOCOLS[request.param]


def until(condition: Callable[[], object], *members: Member) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, [(one.name, one.events, len(one.records)) for one in members]
        for one in members:
            one.poll()


def fill(broker: sskafka.Broker, topic: str, partitions: int, count: int, *, create: bool = True) -> None:
    if create:
        broker.create_topic(topic, partitions)
    with sskafka.Producer(broker.bootstrap_servers) as producer:
        for partition in range(partitions):
            producer.send_batch(topic, None, [f"{partition}/{n}" for n in range(count)], partition=partition)


def read_by(*members: Member) -> Counter[tuple[int, int]]:
    return Counter((record.partition, record.offset) for one in members for record in one.records)


def test_every_record_is_read_once_across_a_join_and_a_leave(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str, protocol: dict[str, str]
) -> None:
    fill(broker, topic, 4, 200)
    first = member(name="first", group_id=topic, **protocol).subscribe(topic)
    until(lambda: len(first.records) >= 50, first)
    second = member(name="second", group_id=topic, **protocol).subscribe(topic)
    until(lambda: len(first.partitions) == len(second.partitions) == 2, first, second)
    until(lambda: len(second.records) >= 50, first, second)
    second.consumer.close()
    assert second.events[-1][0] == "on_revoke"
    until(lambda: len(first.partitions) == 4, first)
    fill(broker, topic, 4, 50, create=False)
    until(lambda: sum(read_by(first, second).values()) >= 1000, first)
    counts = read_by(first, second)
    assert set(counts.values()) == {1}
    assert len(counts) == 1000
    assert "on_lost" not in {event for event, _ in first.events + second.events}


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_the_partitions_of_a_killed_member_move(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str, group_protocol: str
) -> None:
    fill(broker, topic, 2, 20)
    arguments = [broker.bootstrap_servers, topic, topic, group_protocol]
    process = subprocess.Popen([sys.executable, "-c", KILLED_MEMBER, *arguments], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        survivor = member(group_id=topic, group_protocol=group_protocol).subscribe(topic)
        until(lambda: len(survivor.partitions) == 1, survivor)
    finally:
        process.kill()
        process.communicate()
    until(lambda: len(read_by(survivor)) == 40, survivor)
    assert survivor.partitions == {0, 1}


def test_a_group_goes_on_where_it_has_committed(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str, protocol: dict[str, str]
) -> None:
    fill(broker, topic, 1, 30)
    properties = {"group_id": topic, "enable_auto_commit": False, **protocol}
    only = TopicPartition(topic, 0)
    first = member(**properties).subscribe(topic).consumer
    until(lambda: first.poll(10, timeout_ms=100))
    assert first.committed([only]) == {}
    first.commit()
    assert first.committed() == {only: 10}
    first.poll(5)
    first.close()
    second = member(**properties).subscribe(topic).consumer
    records: list[ConsumedRecord] = []
    until(lambda: records.extend(second.poll(1)) or records)
    assert records[0].offset == 10
    second.commit({only: 25})
    second.close()
    third = member(**properties).subscribe(topic)
    until(lambda: third.records, third)
    assert third.records[0].offset == 25


def test_positions_are_committed_automatically(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str
) -> None:
    fill(broker, topic, 1, 30)
    one = member(group_id=topic, auto_commit_interval_ms=10).subscribe(topic)
    until(lambda: len(one.records) >= 10, one)
    until(lambda: one.consumer.committed().get(TopicPartition(topic, 0)) == 30, one)


def test_after_an_exception_the_records_come_again(broker: sskafka.Broker, topic: str) -> None:
    fill(broker, topic, 1, 5)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            divide_first_record(broker, topic)


def divide_first_record(broker: sskafka.Broker, topic: str) -> None:
    with sskafka.Consumer(broker.bootstrap_servers, group_id=topic) as consumer:
        consumer.subscribe(topic)
        for record in consumer:
            assert 1 / record.offset


def test_an_iteration_commits_what_it_has_returned(broker: sskafka.Broker, topic: str) -> None:
    fill(broker, topic, 2, 10)
    seen = []
    for stop in (7, 20):
        with sskafka.Consumer(broker.bootstrap_servers, group_id=topic) as consumer:
            consumer.subscribe([topic])
            for record in consumer:
                seen.append((record.partition, record.offset))
                if len(seen) == stop:
                    break
    assert sorted(seen) == [(partition, offset) for partition in range(2) for offset in range(10)]


def test_callbacks_run_on_the_polling_thread_and_may_use_the_consumer(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str
) -> None:
    fill(broker, topic, 1, 10)
    one = member(group_id=topic, enable_auto_commit=False)
    threads = []
    only = TopicPartition(topic, 0)

    def on_assign(partitions: list[TopicPartition]) -> None:
        threads.append(threading.current_thread())
        assert one.consumer.position(topic, 0) == 0
        one.consumer.seek(topic, 0, 4)

    def on_revoke(partitions: list[TopicPartition]) -> None:
        threads.append(threading.current_thread())
        one.consumer.commit()

    one.subscribe(topic, on_assign=on_assign, on_revoke=on_revoke)
    until(lambda: one.records, one)
    assert one.records[0].offset == 4
    one.consumer.close()
    assert threads == [threading.current_thread()] * 2
    other = member(group_id=topic).subscribe(topic)
    until(lambda: other.partitions, other)
    assert other.consumer.committed() == {only: 10}


def test_an_error_in_a_callback_is_raised_by_poll(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str
) -> None:
    fill(broker, topic, 1, 1)

    def fail(partitions: list[TopicPartition]) -> None:
        raise ZeroDivisionError(partitions)

    one = member(group_id=topic).subscribe(topic, on_assign=fail)
    with pytest.raises(ZeroDivisionError):
        until(lambda: False, one)
    until(lambda: one.records, one)


def test_a_member_that_polls_too_late_is_removed_and_its_commit_refused(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str, protocol: dict[str, str]
) -> None:
    fill(broker, topic, 1, 10)
    slow = member(name="slow", group_id=topic, max_poll_interval_ms=300, **protocol).subscribe(topic)
    until(lambda: slow.records, slow)
    other = member(name="other", group_id=topic, **protocol).subscribe(topic)
    until(lambda: other.partitions, other)
    with pytest.raises(CommitFailedError) as refused:
        slow.consumer.commit({TopicPartition(topic, 0): 1})
    assert not refused.value.retriable
    assert ("on_lost", [0]) not in slow.events
    slow.poll()
    assert ("on_lost", [0]) in slow.events
    until(lambda: other.records, other)
    assert other.records[0].offset == 0, "nothing was committed by the slow member"


def test_a_static_member_gets_its_partitions_back_without_a_rebalance(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str, protocol: dict[str, str]
) -> None:
    fill(broker, topic, 4, 1)
    properties = {"group_id": topic, "session_timeout_ms": 10_000, **protocol}
    stays = member(**properties).subscribe(topic)
    returns = member(**properties, group_instance_id="one").subscribe(topic)
    until(lambda: len(stays.partitions) == len(returns.partitions) == 2, stays, returns)
    before, events = returns.partitions, list(stays.events)
    returns.consumer.close()
    again = member(**properties, group_instance_id="one").subscribe(topic)
    until(lambda: again.partitions == before, again, stays)
    assert stays.events == events
    if protocol["group_protocol"] == "classic":  # the coordinator lets the newer one in; KIP-848 refuses it
        usurper = member(**properties, group_instance_id="one").subscribe(topic)
        with pytest.raises(KafkaError) as fenced:
            until(lambda: False, again, usurper)
        assert fenced.value.code == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_pattern_finds_new_topics(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str, group_protocol: str
) -> None:
    fill(broker, f"{topic}-a", 1, 1)
    pattern = re.compile(f"{topic}-.*")
    one = member(group_id=topic, group_protocol=group_protocol, metadata_max_age_ms=100).subscribe(pattern)
    until(lambda: one.records, one)
    fill(broker, f"{topic}-b", 2, 1)
    until(lambda: len(one.records) == 3, one)
    assert {record.topic for record in one.records} == {f"{topic}-a", f"{topic}-b"}


def test_the_leader_assigns_added_partitions(broker: sskafka.Broker, member: Callable[..., Member], topic: str) -> None:
    broker.create_topic(topic, 1)
    one = member(group_id=topic, metadata_max_age_ms=100).subscribe(topic)
    until(lambda: one.partitions == {0}, one)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for done in admin.create_partitions([NewPartitions(topic, 3)]).values():
        done.result()
    until(lambda: one.partitions == {0, 1, 2}, one)


def test_a_new_subscription(broker: sskafka.Broker, member: Callable[..., Member], topic: str) -> None:
    for name in ("x", "y"):
        fill(broker, f"{topic}-{name}", 1, 1)
    for properties in PROTOCOLS.values():
        group = f"{topic}-{len(properties)}-{properties.get('partition_assignment_strategy')}"
        one = member(group_id=group, **properties).subscribe(f"{topic}-x")
        until(lambda one=one: one.records, one)
        one.subscribe([f"{topic}-y"])
        until(lambda one=one: len(one.records) == 2, one)
        assert one.consumer.assignment == {TopicPartition(f"{topic}-y", 0)}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_shared_with_librdkafka(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str, strategy: str
) -> None:
    fill(broker, topic, 4, 10)
    theirs = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 50,
            "session.timeout.ms": 6000,
        }
    )
    read = []

    def poll_theirs() -> None:
        read.extend((one.partition(), one.offset()) for one in theirs.consume(25, 0.02) if one.error() is None)

    try:
        theirs.subscribe([topic])
        until(lambda: poll_theirs() or read)
        ours = member(group_id=topic, partition_assignment_strategy=strategy).subscribe(topic)
        until(lambda: poll_theirs() or len(theirs.assignment()) == len(ours.partitions) == 2, ours)
        fill(broker, topic, 4, 10, create=False)
        until(lambda: poll_theirs() or len({*read, *read_by(ours)}) == 80, ours)
    finally:
        theirs.close()
    until(lambda: len(ours.partitions) == 4, ours)
    assert set((Counter(read) + read_by(ours)).values()) == {1}


def test_the_async_consumer(broker: sskafka.Broker, topic: str) -> None:
    fill(broker, topic, 2, 10)
    events: list[str] = []

    async def on_assign(partitions: list[TopicPartition]) -> None:
        await asyncio.sleep(0)
        events.append("assign")

    async def work() -> None:
        async with sskafka.AsyncConsumer(
            broker.bootstrap_servers, group_id=topic, group_protocol="consumer"
        ) as consumer:
            await consumer.subscribe(topic, on_assign=on_assign, on_revoke=lambda _: events.append("revoke"))
            count = 0
            async for _ in consumer:
                count += 1
                if count == 20:
                    break
            await consumer.commit()
            assert set((await consumer.committed()).values()) == {10}

    asyncio.run(work())
    assert events == ["assign", "revoke"]


def test_without_a_committed_offset_auto_offset_reset_decides(
    broker: sskafka.Broker, member: Callable[..., Member], topic: str
) -> None:
    fill(broker, topic, 1, 5)
    late = member(group_id=f"{topic}-latest", auto_offset_reset="latest").subscribe(topic)
    until(lambda: late.partitions, late)
    assert late.consumer.position(topic, 0) == 5
    none = member(group_id=f"{topic}-none", auto_offset_reset="none").subscribe(topic)
    with pytest.raises(NoOffsetForPartitionError, match="has no committed offset"):
        until(lambda: False, none)


def test_wrong_uses_are_refused(broker: sskafka.Broker, member: Callable[..., Member], topic: str) -> None:
    one = member(group_id=topic).consumer
    with pytest.raises(RuntimeError, match=r"call subscribe\(\)"):
        one.poll()
    with pytest.raises(ValueError, match="partitions that the group assigns"):
        one.subscribe(topic, 0)
    one.subscribe(topic)
    with pytest.raises(ValueError, match="not assigned to this member"):
        one.seek(topic, 0, 0)
    with pytest.raises(ConfigError, match="expected one of classic, consumer"):
        member(group_id=topic, group_protocol="modern")
    alone = member().consumer
    with pytest.raises(ValueError, match="set group_id"):
        alone.commit()
    with pytest.raises(ValueError, match="set group_id"):
        alone.subscribe(re.compile("t.*"))
    other = member(group_id=f"{topic}-u", group_protocol="consumer", group_remote_assignor="nope").subscribe(topic)
    with pytest.raises(KafkaError, match="nope"):
        until(lambda: False, other)


def test_a_cluster_that_cannot_be_reached_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with sskafka.Consumer(address, group_id="g", default_api_timeout_ms=300) as consumer:
        consumer.subscribe("t")
        with pytest.raises(BrokerUnavailableError):
            for _ in consumer:
                pass


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_port_where_nobody_listens_is_an_error_at_once(group_protocol: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    began = time.monotonic()
    with sskafka.Consumer(address, group_id="g", group_protocol=group_protocol) as consumer:
        consumer.subscribe("t")
        with pytest.raises(NobodyListensError, match="connection refused"):
            for _ in consumer:
                pass
    assert time.monotonic() - began < 20, "far less than default.api.timeout.ms, which is 60 s"


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_secure_group_and_a_member_without_rights(topic: str, group_protocol: str) -> None:
    rights = [
        {"allow_principal": "alice", "operation": "All", "topic": "*"},
        {"allow_principal": "alice", "operation": "Read", "group": "hers"},
    ]
    with sskafka.Broker(sasl={"alice": "secret"}, acls=rights) as broker:
        broker.create_topic(topic)
        broker.produce(topic, "value")
        properties = broker.client_properties()
        servers = properties.pop("bootstrap.servers")
        for group, is_allowed in (("hers", True), ("theirs", False)):
            consumer = sskafka.Consumer(servers, group_id=group, group_protocol=group_protocol, **properties)
            with consumer:
                consumer.subscribe(topic)
                if is_allowed:
                    assert next(iter(consumer)).value == b"value"
                else:
                    with pytest.raises(KafkaError) as refused:
                        next(iter(consumer))
                    assert refused.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
