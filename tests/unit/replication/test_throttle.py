"""Catching up at a given rate: the arithmetic, and three brokers on virtual time."""

import pytest
from replica_cluster import ReplicaCluster
from replica_requests import produce

from sskafka.replication.throttle import Throttle, ThrottledSides

RATE = 10_000
BATCHES, BATCH_BYTES = 20, 2_500


class Time:
    now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


def test_without_a_limit_there_is_always_room() -> None:
    throttle = Throttle(Time())
    throttle.take(10**12)
    assert throttle.wait_ms() == 0


def test_debt_is_waited_for_at_the_rate() -> None:
    time = Time()
    throttle = Throttle(time)
    throttle.limit_to(1000)
    throttle.take(3000)
    assert throttle.wait_ms() == 2000
    time.now_ms = 1500
    assert throttle.wait_ms() == 500
    time.now_ms = 2000
    assert throttle.wait_ms() == 0


def test_room_does_not_pile_up_for_longer_than_a_second() -> None:
    time = Time()
    throttle = Throttle(time)
    throttle.limit_to(1000)
    time.now_ms = 60_000
    throttle.take(1500)
    assert throttle.wait_ms() == 500


def test_a_changed_rate_begins_anew() -> None:
    throttle = Throttle(Time())
    throttle.limit_to(10)
    throttle.take(10_000)
    throttle.limit_to(1_000_000)
    assert throttle.wait_ms() == 0


@pytest.mark.parametrize(
    ("leader", "follower", "expected"),
    [
        ((), (), (False, False)),
        (("*",), (), (True, False)),
        (("0:1",), ("3:2",), (False, True)),
        (("3:1",), ("*",), (False, True)),
    ],
)
def test_replicas_are_named_by_partition_and_broker(
    leader: tuple[str, ...], follower: tuple[str, ...], expected: tuple[bool, bool]
) -> None:
    config = {"leader.replication.throttled.replicas": leader, "follower.replication.throttled.replicas": follower}
    assert ThrottledSides.of(config, 3, 2) == expected


def cluster_with_a_backlog(side: str) -> ReplicaCluster:
    """Broker 3 comes back to 50 KB that it may take at 10 KB a second."""
    cluster = ReplicaCluster(
        settings={f"{side}.replication.throttled.rate": str(RATE), "replica.fetch.max.bytes": "2600"}
    )
    cluster.controller.create_topic([[1, 2, 3]], {f"{side}.replication.throttled.replicas": "*"})
    cluster.time.run_for(300)
    cluster.stop(3)
    for _ in range(BATCHES):
        assert produce(cluster, bytes(BATCH_BYTES)).error_code == 0
    assert cluster.controller.state().isr == (1, 2)
    cluster.start(3)
    return cluster


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_replica_that_is_behind_catches_up_no_faster_than_it_may(side: str) -> None:
    cluster = cluster_with_a_backlog(side)
    cluster.time.run_for(2_000)
    assert 4 <= cluster.partition(3).log.log_end_offset <= 14
    cluster.time.run_for(6_000)
    assert cluster.partition(3).log.log_end_offset == BATCHES
    assert cluster.controller.state().isr == (1, 2, 3)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_replicas_in_sync_are_not_held_back(side: str) -> None:
    cluster = cluster_with_a_backlog(side)
    before = cluster.time.elapsed_ms
    for _ in range(BATCHES):
        assert produce(cluster, bytes(BATCH_BYTES)).error_code == 0
    assert cluster.time.elapsed_ms - before < 1_000
