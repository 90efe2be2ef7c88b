"""Topics of a run: created on the replicas of the broker and deleted afterwards, with librdkafka's admin client."""

import contextlib
import itertools
import time
from collections.abc import Iterator

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import Broker

ADMIN_SECONDS_MAX = 30.0
FILES_GONE_SECONDS_MAX = 5.0
_numbers = itertools.count(1)


@contextlib.contextmanager
def fresh_topic(broker: Broker, partitions: int) -> Iterator[str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    name = f"bench-{time.time_ns()}-{next(_numbers)}"
    new = NewTopic(name, num_partitions=partitions, replica_assignment=[list(broker.replicas)] * partitions)
    admin.create_topics([new])[name].result(ADMIN_SECONDS_MAX)
    _wait_for_leaders(admin, name, broker)
    _wait_until_served(admin, name, partitions)
    if len(broker.replicas) > 1:
        _wait_until_followed(broker, name, partitions)
    try:
        yield name
    finally:
        admin.delete_topics([name])[name].result(ADMIN_SECONDS_MAX)
        _wait_until_files_gone(broker, name)


def _wait_for_leaders(admin: AdminClient, name: str, broker: Broker) -> None:
    deadline = time.monotonic() + ADMIN_SECONDS_MAX
    while time.monotonic() < deadline:
        cluster = admin.list_topics(name, timeout=ADMIN_SECONDS_MAX)
        found = cluster.topics[name].partitions.values()
        leaders = {partition.leader for partition in found}
        in_sync = all(len(partition.isrs) == len(broker.replicas) for partition in found)
        if leaders and leaders <= cluster.brokers.keys() and in_sync:
            _require_leader_at(broker, {cluster.brokers[leader].port for leader in leaders})
            return
        time.sleep(0.02)
    raise TimeoutError(f"topic {name} has no leader, or not all its replicas are in sync")


def _require_leader_at(broker: Broker, ports: set[int]) -> None:
    """Check that every partition is led by this broker, because raw requests go to one address."""
    if ports != {broker.port}:
        raise ValueError(f"partitions are led at ports {ports}, not at {broker.bootstrap}: measure a single broker")


def _wait_until_served(admin: AdminClient, name: str, partitions: int) -> None:
    """Wait until ListOffsets works for each partition: metadata may name a leader before it serves requests."""
    ends = {TopicPartition(name, partition): OffsetSpec.latest() for partition in range(partitions)}  # type: ignore[no-untyped-call]
    deadline = time.monotonic() + ADMIN_SECONDS_MAX
    while True:
        try:
            for answer in admin.list_offsets(ends).values():
                answer.result(ADMIN_SECONDS_MAX)
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _wait_until_followed(broker: Broker, name: str, partitions: int) -> None:
    """Write to all replicas of each partition: followers of a new topic may take a second to find the leader."""
    failures: list[str] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})

    def report(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    for partition in range(partitions):
        producer.produce(name, b"first", partition=partition, on_delivery=report)
    if producer.flush(ADMIN_SECONDS_MAX) or failures:
        raise TimeoutError(f"topic {name} is not replicated: {failures}")


def _wait_until_files_gone(broker: Broker, name: str) -> None:
    """Wait, best effort, until the files are deleted, so that they do not compete with the next round for memory."""
    deadline = time.monotonic() + FILES_GONE_SECONDS_MAX
    while broker.data is not None and any(broker.data.glob(f"{name}-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
