"""Topics in one Fetch request: CPU time of the broker for a fetch and for a topic in it."""

import asyncio
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import Broker, BrokerKind
from benchmarks.groups import Wire
from benchmarks.growing.figures import Row, cpu_s
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

VERSION = 12
"""The last version that names topics instead of their ids."""
RECORD_BYTES = 100
TIMEOUT_S = 60.0
CPU_S_MIN = 1.0
"""Fetches continue until the broker has spent this much CPU time: clock ticks are 10 ms."""


def measure(kind: BrokerKind, directory: Path, count: int) -> Row:
    with kind.running(directory) as broker:
        names = [f"topic-{number}" for number in range(count)]
        fill(broker, names)
        cpu_us = asyncio.run(cpu_of_fetches(broker, names))
    return {"CPU us a fetch": f"{cpu_us:.0f}", "CPU us a topic": f"{cpu_us / count:.1f}"}


def fill(broker: Broker, names: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        created.result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for name in names:
        producer.produce(name, bytes(RECORD_BYTES))
    assert producer.flush(TIMEOUT_S) == 0, "not all records were stored"


async def cpu_of_fetches(broker: Broker, names: list[str]) -> float:
    """Return the CPU time of a fetch without a session, which reads a record of each topic, in microseconds."""
    wire = await Wire.open(broker)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 26,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=name, partitions=[FetchPartition(0, partition_max_bytes=1 << 20)]) for name in names],
    )
    frame = wire.frame(request, VERSION)
    await fetch(wire, frame, RECORD_BYTES * len(names), 100)
    before, fetches = cpu_s(broker), 0
    while (spent := cpu_s(broker) - before) < CPU_S_MIN:
        await fetch(wire, frame, RECORD_BYTES * len(names), 100)
        fetches += 100
    wire.writer.close()
    return spent / fetches * 1e6


async def fetch(wire: Wire, frame: bytes, least_bytes: int, times: int) -> None:
    for _ in range(times):
        wire.writer.write(frame)
        assert len(await wire.receive()) > least_bytes, "records are missing"
