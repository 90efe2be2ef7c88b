"""A log of many gigabytes: starts after a clean stop and after kill -9, and searches in it."""

import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import Broker, BrokerKind
from benchmarks.growing.figures import Row, cpu_s, descriptors, kill, rss_mb, seconds_of, started

TOPIC = "large"
RECORD_BYTES = 10_000
TIMEOUT_S = 600.0
SEARCHES = 100


def measure(kind: BrokerKind, directory: Path, gigabytes: int) -> Row:
    count = gigabytes * 10**9 // RECORD_BYTES
    with kind.running(directory) as broker:
        cpu_before = cpu_s(broker)
        began_ms = time.time() * 1000
        wrote = seconds_of(lambda: fill(broker, count))
        cpu_of_writing = cpu_s(broker) - cpu_before
        row = {
            "write s (broker CPU s/GB)": f"{wrote:.1f} ({cpu_of_writing / gigabytes:.2f})",
            "RSS MB": f"{rss_mb(broker):.0f}",
            "descriptors": f"{descriptors(broker)}",
            "search by time ms": f"{search_ms(broker, began_ms, wrote):.1f}",
            "first record at a random offset ms": f"{seek_ms(broker, count):.1f}",
        }
        kill(broker)
    with kind.running(directory) as broker:
        row["start after kill -9 s (CPU)"] = started(broker)
    with kind.running(directory) as broker:
        row["start after a clean stop s (CPU)"] = started(broker)
        kill(broker)
    with kind.running(directory) as broker:
        row["start after kill -9, nothing written s (CPU)"] = started(broker)
        kill(broker)
    return row


def fill(broker: Broker, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(TIMEOUT_S)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "acks": "1",
            "batch.size": 1_000_000,
            "linger.ms": 20,
            "queue.buffering.max.kbytes": 100_000,
        }
    )
    value = bytes(RECORD_BYTES)
    for _ in range(count):
        while True:
            try:
                producer.produce(TOPIC, value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(TIMEOUT_S):
        raise SystemExit("not all records were stored")


def search_ms(broker: Broker, began_ms: float, seconds: float) -> float:
    """Return the mean time of a search for an offset by timestamp."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    began_at = time.monotonic()
    for number in range(SEARCHES):
        at = OffsetSpec.for_timestamp(int(began_ms + seconds * 1000 * number / SEARCHES))
        for found in admin.list_offsets({TopicPartition(TOPIC, 0): at}).values():
            found.result(TIMEOUT_S)
    return (time.monotonic() - began_at) / SEARCHES * 1000


def seek_ms(broker: Broker, count: int) -> float:
    """Return the mean time from a seek until the first record arrives."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "fetch.message.max.bytes": 100_000,
            "fetch.wait.max.ms": 10,
        }
    )
    began_at = time.monotonic()
    for number in range(SEARCHES):
        offset = number * 7919 * 104729 % count
        consumer.assign([TopicPartition(TOPIC, 0, offset)])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, "no record arrived"
        assert message.offset() == offset
    taken = time.monotonic() - began_at
    consumer.close()
    return taken / SEARCHES * 1000
