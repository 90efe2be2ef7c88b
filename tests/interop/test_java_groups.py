"""Classic groups with the Java client and kafka-consumer-groups; offsets that a broker reads from the other's log."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.brokers import Broker, BrokerKind
from programs import APACHE_KAFKA, SSKAFKA, JavaTools, Kcat

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
CLASSIC = ("--command-property", "group.protocol=classic")
MESSAGES = 20


@pytest.fixture
def numbers(kcat: Kcat, topic: str) -> str:
    kcat.produce(topic, [str(number) for number in range(MESSAGES)])
    return topic


def at(broker: Broker) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap


def consume(java: JavaTools, broker: Broker, topic: str, group: str, count: int) -> list[str]:
    options = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count))
    return java.run(CONSUMER, *at(broker), *options, "--timeout-ms", "30000", *CLASSIC).split()


def described(java: JavaTools, broker: Broker, group: str) -> dict[tuple[str, int], tuple[str, str, str]]:
    """Committed offset, end of the log and lag, by topic and partition."""
    output = java.run(GROUPS, *at(broker), "--describe", "--group", group)
    rows = re.findall(rf"^{re.escape(group)}\s+(\S+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)", output, re.MULTILINE)
    return {(name, int(partition)): (offset, end, lag) for name, partition, offset, end, lag in rows}


def test_a_console_consumer_goes_on_where_it_stopped(java: JavaTools, broker: Broker, numbers: str) -> None:
    group = f"{numbers}-group"
    assert consume(java, broker, numbers, group, 12) == [str(number) for number in range(12)]
    assert described(java, broker, group) == {(numbers, 0): ("12", "20", "8")}
    assert consume(java, broker, numbers, group, 8) == [str(number) for number in range(12, 20)]
    assert described(java, broker, group) == {(numbers, 0): ("20", "20", "0")}


def test_groups_are_listed_moved_and_deleted(java: JavaTools, broker: Broker, numbers: str) -> None:
    group = f"{numbers}-moved"
    consume(java, broker, numbers, group, MESSAGES)
    listed = java.run(GROUPS, *at(broker), "--list", "--state", "--type")
    assert re.search(rf"^{group}\s+Classic\s+Empty", listed, re.MULTILINE | re.IGNORECASE)
    state = java.run(GROUPS, *at(broker), "--describe", "--group", group, "--state")
    assert re.search(rf"^{group}\s+.*Empty", state, re.MULTILINE)
    java.run(
        GROUPS, *at(broker), "--group", group, "--topic", numbers, "--reset-offsets", "--to-offset", "5", "--execute"
    )
    assert described(java, broker, group)[numbers, 0] == ("5", "20", "15")
    java.run(GROUPS, *at(broker), "--group", group, "--topic", numbers, "--delete-offsets")
    assert described(java, broker, group) == {}
    java.run(GROUPS, *at(broker), "--group", group, "--delete")
    assert group not in java.run(GROUPS, *at(broker), "--list").split()


@pytest.mark.parametrize(("writer", "reader"), [(APACHE_KAFKA, SSKAFKA), (SSKAFKA, APACHE_KAFKA)])
def test_offsets_are_read_from_the_others_log(
    writer: str,
    reader: str,
    java: JavaTools,
    kcat_program: str,
    broker_kind: Callable[[str], BrokerKind],
    tmp_path: Path,
) -> None:
    settings = {"offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "1"}
    with broker_kind(writer).running(tmp_path / "written", settings) as broker:
        Kcat(kcat_program, broker.bootstrap).produce("numbers", [str(number) for number in range(MESSAGES)])
        consume(java, broker, "numbers", "readers", 12)
        before = described(java, broker, "readers")
    (tmp_path / "read").mkdir()
    shutil.copytree(tmp_path / "written" / "data", tmp_path / "read" / "data")
    logs = ",".join(str(path) for path in (tmp_path / "read" / "data").glob("__consumer_offsets-*/*.log"))
    dumped = java.run(DUMP, "--files", logs, "--offsets-decoder", "--print-data-log")
    assert '"group":"readers","topic":"numbers","partition":0' in dumped
    assert '"protocolType":"consumer"' in dumped
    with broker_kind(reader).running(tmp_path / "read", settings) as broker:
        assert described(java, broker, "readers") == before == {("numbers", 0): ("12", "20", "8")}
        assert consume(java, broker, "numbers", "readers", 8) == [str(number) for number in range(12, 20)]
