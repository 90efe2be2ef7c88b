"""Bundled consumers in a group whose coordinator is killed, reading from any replica."""

import time
from collections import Counter
from collections.abc import Callable

import pytest
from cluster_processes import ClusterProcesses, StartCluster

import sskafka
from sskafka.client.fetched import ConsumedRecord
from sskafka.model.settings_table.profiles import FAST_FAILOVER
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("_ours")]

LIMIT_S = 60
TOPIC = "numbers"
PARTITIONS = 4


def coordinator_of(cluster: ClusterProcesses, group: str) -> int:
    return int(cluster.ask(FindCoordinatorRequest(key=group), 2).node_id)


def produce(cluster: ClusterProcesses, count: int) -> None:
    with sskafka.Producer(cluster.bootstrap, acks="all") as producer:
        for partition in range(PARTITIONS):
            producer.send_batch(TOPIC, None, [b"x"] * count, partition=partition)


def until(condition: Callable[[], object], poll: Callable[[], None]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        poll()


def test_members_survive_their_coordinator(start_cluster: StartCluster) -> None:
    groups = {"classic": "cooperative-sticky", "consumer": ""}
    cluster = start_cluster(
        3, {**FAST_FAILOVER, "group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
    )
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    produce(cluster, 50)
    consumers: list[tuple[str, sskafka.Consumer]] = []
    records: dict[str, list[ConsumedRecord]] = {group: [] for group in groups}
    lost: list[object] = []
    for group, strategy in groups.items():
        for _ in range(2):
            properties = {"partition_assignment_strategy": strategy} if strategy else {}
            made = sskafka.Consumer(
                cluster.bootstrap, group_id=group, group_protocol=group, heartbeat_interval_ms=200, **properties
            )
            made.subscribe(TOPIC, leader_only=False, on_lost=lost.extend)
            consumers.append((group, made))

    def poll() -> None:
        for group, consumer in consumers:
            records[group] += consumer.poll(20, timeout_ms=20)

    def has_read(count: int) -> bool:
        return all(len(read) >= count * PARTITIONS for read in records.values())

    try:
        until(lambda: has_read(50) and all(len(one.assignment) == 2 for _, one in consumers), poll)
        victim = coordinator_of(cluster, "classic")
        assert coordinator_of(cluster, "consumer") == victim
        cluster.kill(victim)
        produce(cluster, 50)
        until(lambda: has_read(100), poll)
        for _, consumer in consumers:
            consumer.commit()
        assert coordinator_of(cluster, "classic") != victim
    finally:
        for _, consumer in consumers:
            consumer.close()
    assert lost == [], "nobody lost a partition: the new coordinator knows the members"
    for group, read in records.items():
        counts = Counter((record.partition, record.offset) for record in read)
        assert set(counts.values()) == {1}, group
        assert len(counts) == 100 * PARTITIONS
