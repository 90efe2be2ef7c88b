"""Networks that break between brokers: a side without a majority makes no progress, and nothing differs afterwards."""

import time
from collections.abc import Callable

import pytest
from cluster_load import Load
from cluster_network import NetworkedCluster
from cluster_processes import PartitionState
from replica_files import stored_batches
from waiting import wait_until
from wire_connection import PRODUCE_VERSION, Connection, produce_request, values_batch

from sskafka.model.errors import ErrorCode
from sskafka.model.settings_table.profiles import FAST_FAILOVER

TOPIC = "numbers"
PARTITIONS = 3
IMPATIENT = {"socket.timeout.ms": 3000, "request.timeout.ms": 2000, "topic.metadata.refresh.interval.ms": 1000}
"""A leader that is cut off answers its clients that time is up, which is no reason for them to look for another one."""

StartNetworked = Callable[..., NetworkedCluster]


def states_seen_by(cluster: NetworkedCluster, node_id: int) -> dict[int, PartitionState]:
    return cluster.partitions(TOPIC, node_id)


def wait_for_leaders_among(cluster: NetworkedCluster, side: list[int]) -> None:
    wait_until(
        lambda: {state.leader for state in states_seen_by(cluster, side[0]).values()} <= set(side),
        f"{side} lead every partition",
        timeout_s=30,
    )


def assert_copies_equal(cluster: NetworkedCluster) -> None:
    assert cluster.stop() == 0, cluster.logs()
    for partition in range(PARTITIONS):
        copies = [stored_batches(cluster.home(node) / "data", TOPIC, partition) for node in cluster.node_ids]
        assert copies[0] == copies[1] == copies[2], f"replicas of partition {partition} differ"


def heal_and_wait(cluster: NetworkedCluster, load: Load) -> None:
    cluster.network.heal()
    cluster.wait_for_brokers(cluster.node_ids, timeout_s=60)
    cluster.wait_for_isr(TOPIC, cluster.node_ids, timeout_s=60)
    load.wait_for_progress()


@pytest.mark.parametrize("is_controller", [False, True], ids=["broker", "controller"])
def test_one_broker_is_cut_off_from_the_others(start_networked: StartNetworked, is_controller: bool) -> None:
    """Clients reach both sides: only brokers cannot hear each other."""
    cluster = start_networked(3, FAST_FAILOVER)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    load = Load(cluster.bootstrap, TOPIC, PARTITIONS, **IMPATIENT)
    with load.running():
        controller = cluster.controller()
        alone = next(node for node in cluster.node_ids if (node == controller) is is_controller)
        others = [node for node in cluster.node_ids if node != alone]
        led_alone = next(p for p, state in cluster.partitions(TOPIC).items() if state.leader == alone)
        cluster.network.split([alone], others)
        wait_for_leaders_among(cluster, others)
        assert_no_progress(cluster, alone, led_alone)
        load.wait_for_progress()
        heal_and_wait(cluster, load)
    load.verify()
    assert_copies_equal(cluster)


def assert_no_progress(cluster: NetworkedCluster, alone: int, partition: int) -> None:
    """What clients ask of the side without a majority is refused or waits; nothing is acknowledged."""
    with Connection(cluster.address(alone)) as connection:
        request = produce_request(TOPIC, values_batch(b"-1 nobody may see this"), partition)
        request.timeout_ms = 3000
        answer = connection.call(request, PRODUCE_VERSION).responses[0].partition_responses[0]
    assert answer.error_code in {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    }


def test_one_direction_breaks(start_networked: StartNetworked) -> None:
    """The others hear a broker that hears nobody: it must not lead, and must not disturb those who do."""
    cluster = start_networked(3, FAST_FAILOVER)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    load = Load(cluster.bootstrap, TOPIC, PARTITIONS, **IMPATIENT)
    with load.running():
        deaf = cluster.controller()
        others = [node for node in cluster.node_ids if node != deaf]
        cluster.network.cut(others, [deaf])
        wait_for_leaders_among(cluster, others)
        load.wait_for_progress()
        epoch = cluster.quorum(others[0]).leader_epoch
        time.sleep(5)  # long enough for many elections, if it called for them
        assert cluster.quorum(others[0]).leader_epoch == epoch
        heal_and_wait(cluster, load)
    load.verify()
    assert_copies_equal(cluster)


def test_nobody_hears_anybody(start_networked: StartNetworked) -> None:
    cluster = start_networked(3, FAST_FAILOVER)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    load = Load(cluster.bootstrap, TOPIC, PARTITIONS, **IMPATIENT)
    with load.running():
        cluster.network.split([1], [2], [3])
        time.sleep(4)  # leaders have found out that they are alone
        before = load.acknowledged
        time.sleep(4)
        assert load.acknowledged == before, "a write was acknowledged by a broker on its own"
        heal_and_wait(cluster, load)
    load.verify()
    assert_copies_equal(cluster)
