"""franz-go: one transaction after the other at full speed. Each begins while markers of the last are on their way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.brokers import Broker

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from cluster_fixtures import start_cluster
from cluster_processes import ClusterProcesses, StartCluster
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

__all__ = ["start_cluster"]

PROGRAM = Path(__file__).parent / "franz"
BUILD_SECONDS_MAX = 280
PARTITIONS = 3
RECORDS = 1_500


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program that copies one topic to another, transaction by transaction."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    program = tmp_path_factory.mktemp("franz") / "chain"
    built = subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=PROGRAM,
        env=os.environ | {"CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return str(program)


@pytest.fixture
def three_brokers(start_cluster: StartCluster) -> ClusterProcesses:
    """Leaders, coordinators and groups are on different brokers: markers and questions travel."""
    return start_cluster(3)


def create_topics(bootstrap: str, *names: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, replicas) for name in names]).values():
        future.result(30)


def write(bootstrap: str, topic: str, count: int) -> set[bytes]:
    producer = Producer({"bootstrap.servers": bootstrap})
    values = [b"%d" % number for number in range(count)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return set(values)


def read_committed(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Everything up to the end of each partition; more than `count` records would show as well."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values: list[bytes] = []
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS or len(values) < count:
        message = consumer.poll(30)
        assert message is not None, f"{len(values)} of {count} records in 30 seconds"
        if message.error() is None:
            values.append(message.value() or b"")
            ended.discard(message.partition())
        else:
            ended.add(message.partition())
    consumer.close()
    return values


def copies_everything_once(chain: str, bootstrap: str, topic: str, replicas: int) -> None:
    create_topics(bootstrap, topic, f"{topic}-copy", replicas=replicas)
    written = write(bootstrap, topic, RECORDS)
    options = {"bootstrap": bootstrap, "input": topic, "output": f"{topic}-copy", "count": RECORDS, "timeout": "150s"}
    done = subprocess.run(
        [chain, *(f"-{name}={value}" for name, value in options.items())],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= RECORDS // 5, "transactions of at most five records"
    copied = read_committed(bootstrap, f"{topic}-copy", RECORDS)
    assert len(copied) == RECORDS
    assert set(copied) == written


def test_back_to_back_transactions(chain: str, broker: Broker, topic: str) -> None:
    copies_everything_once(chain, broker.bootstrap, topic, replicas=1)


def test_back_to_back_transactions_over_three_brokers(chain: str, three_brokers: ClusterProcesses, topic: str) -> None:
    copies_everything_once(chain, three_brokers.bootstrap, topic, replicas=3)
