"""Kafka Streams' word count with exactly_once_v2 against three brokers, one of which dies, as does an instance."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from benchmarks.apache_kafka import KafkaLibs, resolve_kafka_libs
from benchmarks.maven import ROOT, UnavailableError
from cluster_fixtures import start_cluster
from cluster_processes import StartCluster
from confluent_kafka import Consumer, Producer, TopicPartition
from waiting import wait_until

__all__ = ["start_cluster"]

PROGRAM = Path(__file__).parent / "java" / "WordCount.java"
WORDS = ["log", "leader", "broker", "epoch", "offset", "record"]
LINES, COUNTS = "lines", "counts"
PARTITIONS = 3
LINES_IN_PART = 400
SECONDS_MAX = 120
SETTINGS = {
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": 3000,
}


@pytest.fixture(scope="session")
def streams_libs() -> KafkaLibs:
    try:
        return resolve_kafka_libs(Path(__file__).with_name("kafka-streams.pom.xml"), ROOT / "build" / "kafka-streams")
    except UnavailableError as reason:
        pytest.skip(f"Kafka Streams is not available: {reason}")


@contextmanager
def word_count(libs: KafkaLibs, bootstrap: str, directory: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = libs.java(str(PROGRAM), bootstrap, "words", LINES, COUNTS, str(directory))
    with (directory.parent / f"{directory.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


def test_word_count(streams_libs: KafkaLibs, start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(3, SETTINGS)
    for topic in (LINES, COUNTS):
        cluster.create_topic(topic, PARTITIONS, min_insync_replicas=2)
    expected: Counter[str] = Counter()
    chance = random.Random(7)
    write_lines(cluster.bootstrap, chance, expected)
    with word_count(streams_libs, cluster.bootstrap, tmp_path / "one") as first:
        wait_for_counts(cluster.bootstrap, expected)
        write_lines(cluster.bootstrap, chance, expected)
        first.kill()  # in the midst of a transaction, if it has begun with them
    with word_count(streams_libs, cluster.bootstrap, tmp_path / "two"):
        write_lines(cluster.bootstrap, chance, expected)
        cluster.kill(2)
        wait_for_counts(cluster.bootstrap, expected)
        cluster.start_broker(2)
        write_lines(cluster.bootstrap, chance, expected)
        wait_for_counts(cluster.bootstrap, expected)
    assert every_count_once(cluster.bootstrap) == expected


def write_lines(bootstrap: str, chance: random.Random, expected: Counter[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for _ in range(LINES_IN_PART):
        words = chance.choices(WORDS, k=5)
        expected.update(words)
        producer.produce(LINES, " ".join(words))
    assert producer.flush(30) == 0


def read_counts(bootstrap: str) -> list[tuple[str, int]]:
    """Every count that was committed, in the order of its word."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(COUNTS, partition, 0) for partition in range(PARTITIONS)])
    found: list[tuple[str, int]] = []
    ends = 0
    try:
        while ends < PARTITIONS:
            message = consumer.poll(20)
            assert message is not None
            if message.error():
                ends += 1
            else:
                found.append((message.key().decode(), int(message.value())))
    finally:
        consumer.close()
    return found


def wait_for_counts(bootstrap: str, expected: Counter[str]) -> None:
    wait_until(lambda: dict(read_counts(bootstrap)) == expected, f"the counts are {expected}", SECONDS_MAX)


def every_count_once(bootstrap: str) -> Counter[str]:
    """The last counts; fails where a word's counts do not go up by one: one too many, or one lost."""
    latest: Counter[str] = Counter()
    for word, count in read_counts(bootstrap):
        assert count == latest[word] + 1, f"{word}: {count} after {latest[word]}"
        latest[word] = count
    return latest
