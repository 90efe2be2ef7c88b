"""Readers of committed records, on every replica: the last stable offset and the aborted transactions."""

import pytest
from logs import batch, decided_end, marker
from replica_cluster import ReplicaCluster

from sskafka.replication.partition import ACKS_ALL, Partition

LEADER, FOLLOWER, OTHER = 1, 2, 3
ME, YOU = 7, 8


@pytest.fixture
def cluster() -> ReplicaCluster:
    made = ReplicaCluster(settings={"transaction.partition.verification.enable": "false"})
    made.controller.create_topic([[LEADER, FOLLOWER, OTHER]])
    made.time.run_for(500)
    return made


def write(cluster: ReplicaCluster, producer_id: int, sequence: int, broker_id: int = LEADER) -> None:
    written = batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    cluster.partition(broker_id).append(memoryview(written), ACKS_ALL, cluster.time.now_ms())


def end(cluster: ReplicaCluster, producer_id: int, *, commit: bool, broker_id: int = LEADER) -> None:
    ending = memoryview(marker(producer_id, 0, commit=commit))
    cluster.partition(broker_id).append(ending, ACKS_ALL, cluster.time.now_ms(), from_client=False)


def read_committed(partition: Partition) -> tuple[int, list[tuple[int, int]]]:
    """How far readers get, and what they must leave out."""
    found = partition.read(0, 1 << 20, read_committed=True, from_any_replica=True)
    return found.last_stable_offset, found.aborted or []


def test_every_replica_holds_readers_back_alike(cluster: ReplicaCluster) -> None:
    write(cluster, ME, 0)
    write(cluster, YOU, 0)
    cluster.time.run_for(500)
    for broker_id in (LEADER, FOLLOWER, OTHER):
        assert read_committed(cluster.partition(broker_id)) == (0, [])
    end(cluster, ME, commit=False)
    cluster.time.run_for(500)
    for broker_id in (LEADER, FOLLOWER, OTHER):
        assert read_committed(cluster.partition(broker_id)) == (1, [(ME, 0)])
    end(cluster, YOU, commit=True)
    cluster.time.run_for(500)
    for broker_id in (LEADER, FOLLOWER, OTHER):
        assert read_committed(cluster.partition(broker_id)) == (4, [(ME, 0)])


def test_an_outcome_counts_once_it_is_committed(cluster: ReplicaCluster) -> None:
    write(cluster, ME, 0)
    cluster.time.run_for(500)
    end(cluster, ME, commit=True)
    leader = cluster.partition(LEADER)
    assert decided_end(leader.log) == 2, "the log has the marker"
    assert read_committed(leader) == (0, []), "the replicas have not"
    cluster.time.run_for(500)
    assert read_committed(leader) == (2, [])


def test_the_next_leader_knows_who_has_a_transaction_open(cluster: ReplicaCluster) -> None:
    write(cluster, ME, 0)
    cluster.time.run_for(500)
    cluster.controller.move_leader(0, FOLLOWER)
    cluster.time.run_for(500)
    follower = cluster.partition(FOLLOWER)
    assert follower.is_leader
    assert follower.log.producers.has_open_transaction(ME, 0)
    write(cluster, ME, 1, FOLLOWER)
    end(cluster, ME, commit=False, broker_id=FOLLOWER)
    cluster.time.run_for(500)
    for broker_id in (LEADER, FOLLOWER, OTHER):
        assert read_committed(cluster.partition(broker_id)) == (3, [(ME, 0)])


def test_readers_are_not_held_back_before_the_start_of_the_log(cluster: ReplicaCluster) -> None:
    """Who is sent to an offset that is gone asks where to go on, and is sent there again."""
    write(cluster, ME, 0)
    write(cluster, ME, 1)
    write(cluster, YOU, 0)
    cluster.time.run_for(500)
    cluster.partition(LEADER).start_at(1)
    cluster.time.run_for(500)
    for broker_id in (LEADER, FOLLOWER, OTHER):
        assert cluster.partition(broker_id).log.log_start_offset == 1
        assert cluster.partition(broker_id).last_stable_offset == 1
    end(cluster, ME, commit=False)
    cluster.time.run_for(500)
    for broker_id in (LEADER, FOLLOWER, OTHER):
        assert cluster.partition(broker_id).last_stable_offset == 2
    end(cluster, YOU, commit=True)
    cluster.time.run_for(500)
    for broker_id in (LEADER, FOLLOWER, OTHER):
        assert cluster.partition(broker_id).last_stable_offset == 5


def test_a_follower_that_lost_a_marker_by_truncation_holds_readers_back_again(cluster: ReplicaCluster) -> None:
    """Only the old leader has the marker, so the next leader has to write it again."""
    write(cluster, ME, 0)
    cluster.time.run_for(500)
    cluster.controller.move_leader(0, FOLLOWER)
    cluster.time.run_for(500)
    follower = cluster.partition(OTHER)
    ending = marker(ME, 0, commit=True)
    ending[0:8] = (1).to_bytes(8, "big")
    follower.log.append_as_follower(memoryview(ending))
    assert decided_end(follower.log) == 2
    follower.truncate_to(1)
    assert decided_end(follower.log) == 0
    assert read_committed(follower) == (0, [])
    assert follower.log.producers.has_open_transaction(ME, 0)
