"""Replication quotas: the computation of rates, and three brokers on virtual time."""

from dataclasses import replace

import pytest
from replica_cluster import TOPIC, ReplicaCluster
from replica_requests import produce

from sskafka.metadata.records import ConfigRecord
from sskafka.replication.throttle import Throttle, TopicThrottle

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


def test_what_exceeds_the_rate_is_waited_for() -> None:
    time = Time()
    throttle = Throttle(time)
    throttle.limit_to(1000)
    throttle.take(3000)
    assert throttle.wait_ms() == 3000
    time.now_ms = 2500
    assert throttle.wait_ms() == 500
    time.now_ms = 3000
    assert throttle.wait_ms() == 0


def test_a_window_may_be_used_up_at_once_after_a_rest() -> None:
    time = Time()
    throttle = Throttle(time)
    throttle.limit_to(1000)
    time.now_ms = 60_000
    throttle.take(1000)
    assert throttle.wait_ms() == 0
    throttle.take(500)
    assert throttle.wait_ms() == 1500


@pytest.mark.parametrize("rate", [0, 1])
def test_nobody_waits_longer_than_all_samples_last(rate: int) -> None:
    time = Time()
    throttle = Throttle(time, samples_max=3, window_ms=2000)
    throttle.limit_to(rate)
    throttle.take(50_000)
    time.now_ms = 2500
    throttle.take(10_000)
    assert throttle.wait_ms() == 6000, "both samples have to be forgotten"
    time.now_ms = 8500
    assert throttle.wait_ms() == 0


def test_the_long_run_rate_is_the_given_one() -> None:
    time = Time()
    throttle = Throttle(time)
    throttle.limit_to(1000)
    taken = 0
    while time.now_ms < 120_000:
        throttle.take(700)
        taken += 700
        time.now_ms += throttle.wait_ms() or 1
    assert 110_000 <= taken <= 135_000


def test_whoever_waits_hears_of_another_rate() -> None:
    throttle = Throttle(Time())
    heard: list[float] = []
    throttle.on_changed = lambda: heard.append(throttle.wait_ms())
    throttle.limit_to(10)
    throttle.take(10_000)
    throttle.limit_to(10)
    throttle.limit_to(1_000_000)
    throttle.limit_to(None)
    assert heard == [0, 0, 0]


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
    assert TopicThrottle(config).sides_of(3, 2) == expected


def cluster_with_a_backlog(side: str, rate: int = RATE, fetch_bytes: int = 2600, windows: int = 11) -> ReplicaCluster:
    """Broker 3 comes back to 50 KB that it may take at 10 KB a second."""
    cluster = ReplicaCluster(
        settings={
            f"{side}.replication.throttled.rate": str(rate),
            "replica.fetch.max.bytes": str(fetch_bytes),
            "replication.quota.window.num": str(windows),
        }
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


@pytest.mark.parametrize("side", ["leader", "follower"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(ConfigRecord(4, "", "{side}.replication.throttled.rate", "1000000"), id="rate raised"),
        pytest.param(ConfigRecord(2, TOPIC, "{side}.replication.throttled.replicas", None), id="replicas removed"),
        pytest.param(ConfigRecord(2, TOPIC, "{side}.replication.throttled.replicas", "0:9"), id="other replicas"),
    ],
)
def test_a_held_back_replica_goes_on_at_once_when_the_throttle_is_lifted(side: str, change: ConfigRecord) -> None:
    """It had taken 20 KB at one byte a second: before the change it would have waited for minutes."""
    cluster = cluster_with_a_backlog(side, rate=1, fetch_bytes=20_000, windows=3_600)
    cluster.time.run_for(20_000)
    assert 0 < cluster.partition(3).log.log_end_offset < BATCHES
    cluster.controller.commit(replace(change, name=change.name.format(side=side)))
    cluster.time.run_for(200)
    assert cluster.partition(3).log.log_end_offset == BATCHES
