"""The bundled consumers in groups of Apache Kafka's coordinator, alone and beside Apache Kafka's own consumer."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from benchmarks.brokers import Broker
from programs import JavaTools

import sskafka
from sskafka.client.errors import CommitFailedError
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.shortcuts import ClientShortcuts
from sskafka.model.ids import TopicPartition

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
LIMIT_S = 60
PROTOCOLS = {
    "range": {"partition_assignment_strategy": "range"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer": {"group_protocol": "consumer"},
}


class Shortcuts(ClientShortcuts):
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def client_properties(self) -> dict[str, str]:
        return {"bootstrap.servers": self._bootstrap}


@pytest.fixture
def shortcuts(broker: Broker) -> Shortcuts:
    return Shortcuts(broker.bootstrap)


@pytest.fixture
def consumer(broker: Broker) -> Iterator[Callable[..., sskafka.Consumer]]:
    with ExitStack() as stack:

        def make(**properties: Any) -> sskafka.Consumer:
            defaults: dict[str, Any] = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200}
            made = sskafka.Consumer(broker.bootstrap, **{**defaults, **properties})
            stack.callback(made.close)
            return made

        yield make


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline


def fill(shortcuts: Shortcuts, topic: str) -> None:
    shortcuts.create_topic(topic, 4)
    for partition in range(4):
        shortcuts.produce(topic, *(f"{partition}/{number}" for number in range(50)), partition=partition)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_share_partitions_across_a_join_and_a_leave(
    consumer: Callable[..., sskafka.Consumer], shortcuts: Shortcuts, topic: str, protocol: str
) -> None:
    fill(shortcuts, topic)
    records: list[ConsumedRecord] = []
    first = consumer(group_id=topic, **PROTOCOLS[protocol])
    first.subscribe(topic)
    until(lambda: records.extend(first.poll(5, timeout_ms=50)) or len(records) >= 20)
    second = consumer(group_id=topic, **PROTOCOLS[protocol])
    second.subscribe(topic)

    def poll_both() -> None:
        for one in (first, second):
            records.extend(one.poll(5, timeout_ms=20))

    until(lambda: poll_both() or len(first.assignment) == len(second.assignment) == 2)
    second.close()
    until(lambda: records.extend(first.poll(50, timeout_ms=50)) or (len(records) >= 200 and len(first.assignment) == 4))
    counts = Counter((record.partition, record.offset) for record in records)
    assert len(counts) == 200
    assert set(counts.values()) == {1}
    first.commit()
    assert set(first.committed().values()) == {50}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_polls_too_late_cannot_commit(
    consumer: Callable[..., sskafka.Consumer], shortcuts: Shortcuts, topic: str, protocol: str
) -> None:
    fill(shortcuts, topic)
    lost: list[TopicPartition] = []
    slow = consumer(group_id=topic, max_poll_interval_ms=500, **PROTOCOLS[protocol])
    slow.subscribe(topic, on_lost=lost.extend)
    until(lambda: slow.poll(1, timeout_ms=50))
    time.sleep(1)
    with pytest.raises(CommitFailedError):
        slow.commit()
    slow.poll(1, timeout_ms=10)
    assert len(lost) == 4
    until(lambda: slow.poll(1, timeout_ms=50))
    slow.commit()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_java_consumer_goes_on_where_a_bundled_one_stopped(
    java: JavaTools,
    broker: Broker,
    consumer: Callable[..., sskafka.Consumer],
    shortcuts: Shortcuts,
    topic: str,
    protocol: str,
) -> None:
    shortcuts.create_topic(topic)
    shortcuts.produce(topic, *(str(number) for number in range(20)))
    ours = consumer(group_id=topic, group_protocol=protocol)
    ours.subscribe(topic)
    records = iter(ours)
    assert [next(records).value for _ in range(12)] == [b"%d" % number for number in range(12)]
    ours.close()
    options = ("--topic", topic, "--group", topic, "--max-messages", "8", "--timeout-ms", "30000")
    properties = ("--command-property", f"group.protocol={protocol}")
    output = java.run(CONSUMER, "--bootstrap-server", broker.bootstrap, *options, *properties)
    assert output.split() == [str(number) for number in range(12, 20)]
