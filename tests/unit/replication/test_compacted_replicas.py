"""Replicas compact their logs independently, and readers of each replica see the same last record of every key."""

import pytest
from compacting import compact, pairs_of, put
from replica_cluster import ReplicaCluster

from sskafka.replication.partition import Partition
from sskafka.storage.compaction.cleanable import find_cleanable

KEYS = 5


@pytest.fixture
def cluster() -> ReplicaCluster:
    made = ReplicaCluster()
    made.controller.create_topic([[1, 2, 3]], {"segment.bytes": "300", "cleanup.policy": "compact"})
    made.time.run_for(300)
    return made


def write(cluster: ReplicaCluster, count: int) -> None:
    leader = cluster.partition(1)
    for n in range(count):
        put(leader.log, (b"%d" % (n % KEYS), b"%d" % n), now_ms=cluster.time.now_ms())
    leader.start_at(leader.log.log_start_offset)  # as an append does, tells those who wait
    for waiter in leader.follower_waiters:
        parked = waiter.note_data()
        if parked is not None:
            parked.data_arrived()
    cluster.time.run_until(lambda: leader.high_watermark == leader.log.log_end_offset)
    cluster.time.run_for(300)


def compact_replica(cluster: ReplicaCluster, partition: Partition) -> None:
    compact(partition.log, cluster.time.now_ms(), last_stable_offset=partition.last_stable_offset)


def state(partition: Partition) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in pairs_of(partition.log)}


def test_a_replica_with_an_empty_disk_copies_the_gaps(cluster: ReplicaCluster) -> None:
    write(cluster, 60)
    compact_replica(cluster, cluster.partition(1))
    assert len(pairs_of(cluster.partition(1).log)) < 30
    cluster.stop(3)
    cluster.replace_disk(3)
    cluster.start(3, lost_data=True)
    cluster.time.run_until(lambda: len(cluster.controller.state().isr) == 3)
    cluster.time.run_for(300)
    assert pairs_of(cluster.partition(3).log) == pairs_of(cluster.partition(1).log)


def test_replicas_compacted_at_different_times_have_one_state(cluster: ReplicaCluster) -> None:
    write(cluster, 30)
    compact_replica(cluster, cluster.partition(1))
    write(cluster, 33)
    compact_replica(cluster, cluster.partition(2))
    states = [state(cluster.partition(broker)) for broker in (1, 2, 3)]
    assert states[0] == states[1] == states[2]
    assert len({cluster.partition(broker).log.log_end_offset for broker in (1, 2, 3)}) == 1


def test_a_compacted_replica_leads_and_its_predecessor_follows(cluster: ReplicaCluster) -> None:
    write(cluster, 40)
    compact_replica(cluster, cluster.partition(2))
    expected = state(cluster.partition(1))
    cluster.controller.move_leader(0, 2)
    cluster.time.run_for(500)
    put(cluster.partition(2).log, (b"0", b"new"), now_ms=cluster.time.now_ms(), epoch=1)
    cluster.time.run_for(6000)
    for broker in (1, 2, 3):
        assert state(cluster.partition(broker)) == expected | {b"0": b"new"}, broker


def test_nothing_is_compacted_that_is_not_on_all_replicas_in_sync(cluster: ReplicaCluster) -> None:
    cluster.network.cut |= {frozenset((1, 2)), frozenset((1, 3))}
    leader = cluster.partition(1)
    for n in range(30):
        put(leader.log, (b"k", b"%d" % n), now_ms=cluster.time.now_ms())
    assert leader.high_watermark == 0
    assert find_cleanable(leader.log, leader.last_stable_offset, cluster.time.now_ms()).segments == ()
