"""Five brokers, one failure after the other under load; which ones, a seed decides."""

import random
import time

import pytest
from cluster_load import Load
from cluster_processes import ClusterProcesses, StartCluster
from replica_files import stored_batches
from waiting import wait_until

from sskafka.model.settings_table.profiles import FAST_FAILOVER

TOPIC = "numbers"
PARTITIONS = 10
ROUNDS = 8


def victims(cluster: ClusterProcesses, chance: random.Random) -> list[int]:
    """The controller, a leader, or two brokers at once: the quorum of five bears two."""
    kind = chance.choice(["controller", "any", "two"])
    if kind == "controller":
        return [cluster.controller()]
    return chance.sample(cluster.node_ids, 2 if kind == "two" else 1)


@pytest.mark.parametrize("seed", [1, 2])
def test_one_failure_after_the_other(start_cluster: StartCluster, seed: int) -> None:
    chance = random.Random(seed)
    cluster = start_cluster(5, FAST_FAILOVER)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    load = Load(cluster.bootstrap, TOPIC, PARTITIONS)
    with load.running():
        for _ in range(ROUNDS):
            chosen = victims(cluster, chance)
            cluster.kill(*chosen)
            time.sleep(chance.uniform(0.0, 3.0))  # how long they are away
            for node_id in chosen:
                cluster.start_broker(node_id, wait=False)
            cluster.wait_for_brokers(cluster.node_ids)
            wait_for_whole_isr(cluster)
            load.wait_for_progress()
    load.verify()
    assert cluster.stop() == 0, cluster.logs()
    assert_copies_equal(cluster)


def test_a_rolling_restart_and_a_restart_of_all(start_cluster: StartCluster) -> None:
    cluster = start_cluster(5)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    load = Load(cluster.bootstrap, TOPIC, PARTITIONS)
    with load.running():
        for node_id in cluster.node_ids:
            cluster.stop_broker(node_id)
            cluster.start_broker(node_id)
            wait_for_whole_isr(cluster)
        for node_id in cluster.node_ids:
            cluster.stop_broker(node_id)
        for node_id in cluster.node_ids:
            cluster.start_broker(node_id, wait=False)
        cluster.wait_for_brokers(cluster.node_ids)
        load.wait_for_progress()
    load.verify()


def wait_for_whole_isr(cluster: ClusterProcesses) -> None:
    wait_until(
        lambda: all(sorted(item.isr) == sorted(item.replicas) for item in cluster.partitions(TOPIC).values()),
        "every replica is in sync",
        timeout_s=60,
    )


def assert_copies_equal(cluster: ClusterProcesses) -> None:
    """Of a stopped cluster: replicas are where their directory is."""
    for partition in range(PARTITIONS):
        homes = [cluster.home(node) / "data" for node in cluster.node_ids]
        copies = [stored_batches(home, TOPIC, partition) for home in homes if (home / f"{TOPIC}-{partition}").exists()]
        assert len(copies) == 3
        assert copies[0] == copies[1] == copies[2], f"replicas of partition {partition} differ"
