"""The Simplified Kafka deck's promise and more, under the clients that come along: a partition with R replicas bears
the death of R-1 followers, and brokers that are neither dead nor alive."""

import signal
import time

from cluster_processes import ClusterProcesses, StartCluster
from simplified_load import TOPIC, Reader, Writer, reading_from_follower, verify, working
from waiting import wait_until

from sskafka.model.settings_table.profiles import FAST_FAILOVER

READERS = 4
PAUSE_S = 8.0


def start(start_cluster: StartCluster, brokers: int) -> tuple[ClusterProcesses, int]:
    """A topic of one partition with three replicas, and its leader."""
    cluster = start_cluster(brokers, dict(FAST_FAILOVER))
    cluster.create_topic(TOPIC, 1, min_insync_replicas=1)
    return cluster, cluster.partitions(TOPIC)[0].leader


def test_all_followers_die_one_after_the_other(start_cluster: StartCluster) -> None:
    cluster, leader = start(start_cluster, 5)
    followers = [replica for replica in cluster.partitions(TOPIC)[0].replicas if replica != leader]
    writer = Writer(cluster.bootstrap)
    readers, _ = reading_from_follower(cluster.bootstrap, leader, READERS)
    with working(writer, *readers) as progress:
        for follower in followers:
            cluster.kill(follower)
            progress()
        wait_until(lambda: cluster.partitions(TOPIC)[0].isr == [leader], "the leader is alone", 30)
        progress()
        assert all(reader.source not in followers for reader in readers)
    verify(writer, *readers)


def test_a_follower_that_says_nothing(start_cluster: StartCluster) -> None:
    cluster, leader = start(start_cluster, 3)
    writer = Writer(cluster.bootstrap)
    readers, paused = reading_from_follower(cluster.bootstrap, leader, READERS)
    with working(writer, *readers) as progress:
        cluster.send(paused, signal.SIGSTOP)
        progress()
        assert all(reader.source != paused for reader in readers)
        cluster.send(paused, signal.SIGCONT)
        cluster.wait_for_isr(TOPIC, cluster.node_ids)
        progress()
    verify(writer, *readers)


def test_a_leader_that_says_nothing_for_a_while(start_cluster: StartCluster) -> None:
    cluster, leader = start(start_cluster, 3)
    writer = Writer(cluster.bootstrap)
    readers = [Reader(cluster.bootstrap, leader_only=True), Reader(cluster.bootstrap, leader_only=False)]
    with working(writer, *readers) as progress:
        cluster.send(leader, signal.SIGSTOP)
        time.sleep(PAUSE_S)  # it is deposed meanwhile
        cluster.send(leader, signal.SIGCONT)
        cluster.wait_for_isr(TOPIC, cluster.node_ids)
        progress()
    verify(writer, *readers)
