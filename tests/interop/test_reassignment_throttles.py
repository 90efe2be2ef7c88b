"""kafka-reassign-partitions with throttles: it sets them, moves replicas, lifts them, and --verify removes them."""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from benchmarks.brokers import Broker, BrokerKind
from benchmarks.clusters import ClusterKind
from confluent_kafka import Producer
from programs import APACHE_KAFKA, SSKAFKA, JavaTools
from waiting import wait_until
from wire_connection import Connection

from sskafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
TOPIC = "moving"
RECORDS, RECORD_BYTES = 400, 10_000
SLOW, FAST = "50000", "500000000"
BROKER, TOPIC_RESOURCE = 4, 2
RATE_OR_REPLICAS = re.compile(r"\.replication\.throttled\.|^replica\.alter\.log\.dirs\.io")

KINDS = pytest.mark.parametrize("kind_name", [APACHE_KAFKA, SSKAFKA])


def throttles(broker: Broker) -> dict[str, str | None]:
    """What is set on broker 1 and on the topic."""
    resources = [DescribeConfigsResource(BROKER, "1"), DescribeConfigsResource(TOPIC_RESOURCE, TOPIC)]
    with Connection(broker.bootstrap) as connection:
        results = connection.call(DescribeConfigsRequest(resources=resources), 4).results
    entries = [entry for result in results for entry in result.configs]
    return {entry.name: entry.value for entry in entries if entry.value and RATE_OR_REPLICAS.search(entry.name)}


def fill(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.size": RECORD_BYTES})
    for _ in range(RECORDS):
        producer.produce(TOPIC, bytes(RECORD_BYTES), partition=0)
    assert producer.flush(60) == 0


class Reassignment:
    """One partition on its way, by the tool."""

    def __init__(self, java: JavaTools, broker: Broker, file: Path, replicas: list[int], log_dirs: list[str]) -> None:
        moved = {"topic": TOPIC, "partition": 0, "replicas": replicas, "log_dirs": log_dirs}
        file.write_text(json.dumps({"version": 1, "partitions": [moved]}))
        self._java = java
        self._common = ("--bootstrap-server", broker.bootstrap, "--reassignment-json-file", str(file))

    def execute(self, *options: str) -> str:
        return self._java.run(REASSIGN, *self._common, "--execute", *options)

    def verify(self, *options: str) -> str:
        return self._java.run(REASSIGN, *self._common, "--verify", *options)

    def wait(self, began: float, seconds_max: float) -> str:
        last = wait_until(lambda: text if "is completed" in (text := self.verify()) else "", "moved", 60)
        assert time.monotonic() - began < seconds_max, "it went on at the old rate"
        return last


@KINDS
def test_a_replica_moves_to_another_broker(
    java: JavaTools, broker_kind: Callable[[str], BrokerKind], kind_name: str, tmp_path: Path
) -> None:
    """4 MB at 50 KB a second take more than a minute, unless the throttle is raised."""
    with ClusterKind(broker_kind(kind_name), 2).running(tmp_path) as broker:
        create = ("--create", "--topic", TOPIC, "--replica-assignment", "1")
        java.run(TOPICS, "--bootstrap-server", broker.bootstrap, *create)
        fill(broker)
        move = Reassignment(java, broker, tmp_path / "move.json", [2], ["any"])
        move.execute("--throttle", SLOW)
        wait_until(lambda: throttles(broker).get("leader.replication.throttled.rate") == SLOW, "broker 1 is throttled")
        assert throttles(broker) == {
            "leader.replication.throttled.rate": SLOW,
            "follower.replication.throttled.rate": SLOW,
            "leader.replication.throttled.replicas": "0:1",
            "follower.replication.throttled.replicas": "0:2",
        }
        assert "still in progress" in move.verify("--preserve-throttles")
        began = time.monotonic()
        move.execute("--throttle", FAST, "--additional")
        assert "Clearing broker-level throttles" in move.wait(began, 30)
        wait_until(lambda: throttles(broker) == {}, "no throttle is left")


@KINDS
def test_a_replica_moves_to_another_log_directory(
    java: JavaTools, broker_kind: Callable[[str], BrokerKind], kind_name: str, tmp_path: Path
) -> None:
    directories = [str(tmp_path / "a"), str(tmp_path / "b")]
    with broker_kind(kind_name).running(tmp_path, {"log.dirs": ",".join(directories)}) as broker:
        java.run(TOPICS, "--bootstrap-server", broker.bootstrap, "--create", "--topic", TOPIC)
        fill(broker)
        source = next(path for path in directories if (Path(path) / f"{TOPIC}-0").exists())
        target = next(path for path in directories if path != source)
        move = Reassignment(java, broker, tmp_path / "move.json", [1], [target])
        move.execute("--replica-alter-log-dirs-throttle", SLOW)
        wait_until(lambda: throttles(broker) == {"replica.alter.log.dirs.io.max.bytes.per.second": SLOW}, "throttled")
        assert "is still in progress" in move.verify("--preserve-throttles")
        began = time.monotonic()
        move.execute("--replica-alter-log-dirs-throttle", FAST, "--additional")
        wait_until((Path(target) / f"{TOPIC}-0").exists, "it is there", 30)
        assert time.monotonic() - began < 30
        assert "Clearing broker-level throttles" in move.verify()
        wait_until(lambda: throttles(broker) == {}, "no throttle is left")
