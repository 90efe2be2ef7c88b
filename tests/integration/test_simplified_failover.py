"""Brokers die under `sskafka.Producer` and `sskafka.Consumer`: readers go on from other replicas, writers with the new
leader; nothing is lost, nothing comes twice, on the way in or out."""

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from simplified_load import TOPIC, Reader, Writer, reading_from_follower, verify, working

from sskafka.model.settings_table.profiles import FAST_FAILOVER

pytestmark = pytest.mark.usefixtures("_ours")

READERS = 4


def start(start_cluster: StartCluster) -> ClusterProcesses:
    cluster = start_cluster(3, dict(FAST_FAILOVER))
    cluster.create_topic(TOPIC, 1, min_insync_replicas=2)
    return cluster


def test_a_follower_dies_and_its_readers_go_on_at_other_replicas(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    leader = cluster.partitions(TOPIC)[0].leader
    writer = Writer(cluster.bootstrap)
    readers, victim = reading_from_follower(cluster.bootstrap, leader, READERS)
    with working(writer, *readers) as progress:
        cluster.kill(victim)
        progress()
        assert all(reader.source != victim for reader in readers)
    verify(writer, *readers)


def test_the_leader_dies_and_clients_find_the_new_one(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    writer = Writer(cluster.bootstrap)
    readers = [Reader(cluster.bootstrap, leader_only=True), Reader(cluster.bootstrap, leader_only=False)]
    with working(writer, *readers) as progress:
        old = cluster.partitions(TOPIC)[0].leader
        cluster.kill(old)
        cluster.wait_for_new_leader(TOPIC, 0, old)
        progress()
    verify(writer, *readers)
