"""Partitions of one topic on one broker: creation, the first records, what an idle one costs, and starts."""

import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import Broker, BrokerKind
from benchmarks.growing.figures import (
    Row,
    cpu_s,
    descriptors,
    idle_percent,
    kill,
    rss_mb,
    seconds_of,
    started,
)

TOPIC = "many"
TIMEOUT_S = 600.0
SETTLE_S = 2.0
PARTITIONS_PER_REQUEST = 5000


def measure(kind: BrokerKind, directory: Path, count: int) -> Row:
    with kind.running(directory) as broker:
        rss_before, descriptors_before = rss_mb(broker), descriptors(broker)
        cpu_before = cpu_s(broker)
        created = seconds_of(lambda: create(broker, count))
        first = seconds_of(lambda: write_to_all(broker, count))
        cpu_of_first = cpu_s(broker) - cpu_before
        again = seconds_of(lambda: write_to_all(broker, count))
        time.sleep(SETTLE_S)
        row = {
            "create s": f"{created:.2f}",
            "first record in each s (CPU, creation included)": f"{first:.2f} ({cpu_of_first:.2f})",
            "second record in each s": f"{again:.2f}",
            "RSS KB a partition": f"{1000 * (rss_mb(broker) - rss_before) / count:.1f}",
            "descriptors a partition": f"{(descriptors(broker) - descriptors_before) / count:.1f}",
            "idle CPU %": f"{idle_percent(broker):.1f}",
        }
    with kind.running(directory) as broker:
        row["start after a clean stop s (CPU)"] = started(broker)
        write_to_all(broker, count)
        kill(broker)
    with kind.running(directory) as broker:
        row["start after kill -9 s (CPU)"] = started(broker)
        row["all written again s"] = f"{seconds_of(lambda: write_to_all(broker, count)):.2f}"
        kill(broker)
    return row


def create(broker: Broker, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = NewTopic(TOPIC, num_partitions=count, replication_factor=1)
    admin.create_topics([new], request_timeout=TIMEOUT_S)[TOPIC].result(TIMEOUT_S)


def write_to_all(broker: Broker, count: int) -> None:
    """Write a record to every partition."""
    failed: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "acks": "all",
            "message.timeout.ms": int(TIMEOUT_S * 1000),
            "queue.buffering.max.messages": 2 * count,
            "log_level": 3,
        }
    )
    for partition in range(count):
        producer.produce(
            TOPIC,
            b"record",
            partition=partition,
            on_delivery=lambda error, _: failed.append(str(error)) if error is not None else None,
        )
        producer.poll(0)
    if producer.flush(TIMEOUT_S) or failed:
        raise SystemExit(f"writing to every partition failed: {failed[:1]}")
