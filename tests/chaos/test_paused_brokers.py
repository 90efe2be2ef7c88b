"""Brokers that stop for a while and go on as if nothing had happened: the worst kind of failure."""

import signal
import time

import pytest
from cluster_load import Load
from cluster_processes import ClusterProcesses, StartCluster
from replica_files import stored_batches
from waiting import wait_until
from wire_connection import PRODUCE_VERSION, Connection, produce_request, values_batch

from sskafka.model.errors import ErrorCode

TOPIC = "numbers"
PARTITIONS = 3
PAUSE_S = 15
IMPATIENT = {"socket.timeout.ms": 3000, "request.timeout.ms": 2000}
"""A client that waits for its socket's default minute would outlast the pause."""


def start_loaded(start_cluster: StartCluster) -> tuple[ClusterProcesses, Load]:
    cluster = start_cluster(3)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    return cluster, Load(cluster.bootstrap, TOPIC, PARTITIONS, **IMPATIENT)


def pause(cluster: ClusterProcesses, node_id: int, seconds: float) -> None:
    cluster.send(node_id, signal.SIGSTOP)
    try:
        time.sleep(seconds)  # the pause itself, not a wait for anything
    finally:
        cluster.send(node_id, signal.SIGCONT)


@pytest.mark.parametrize("is_controller", [False, True], ids=["leader", "leader-and-controller"])
def test_a_leader_pauses(start_cluster: StartCluster, is_controller: bool) -> None:
    cluster, load = start_loaded(start_cluster)
    with load.running():
        controller = cluster.controller()
        leaders = {state.leader for state in cluster.partitions(TOPIC).values()}
        victim = next(node for node in sorted(leaders) if (node == controller) is is_controller)
        began = time.monotonic()
        pause(cluster, victim, PAUSE_S)
        cluster.wait_for_brokers(cluster.node_ids)
        cluster.wait_for_isr(TOPIC, cluster.node_ids)
        load.wait_for_progress()
        assert load.longest_gap(began, time.monotonic()) < 12
    load.verify()
    assert cluster.stop() == 0, cluster.logs()
    for partition in range(PARTITIONS):
        copies = [stored_batches(cluster.home(node) / "data", TOPIC, partition) for node in cluster.node_ids]
        assert copies[0] == copies[1] == copies[2]


def test_a_deposed_leader_acknowledges_nothing_and_truncates(start_cluster: StartCluster) -> None:
    """A request that lies in its socket when it wakes must not be answered as if it still led."""
    cluster = start_cluster(3)
    cluster.create_topic(TOPIC, 1, min_insync_replicas=2)
    old = cluster.partitions(TOPIC)[0].leader
    with Connection(cluster.address(old)) as connection:
        assert connection.produce(TOPIC, values_batch(b"before")).error_code == 0
        cluster.send(old, signal.SIGSTOP)
        try:
            new = cluster_leader_other_than(cluster, old)
            connection.send(produce_request(TOPIC, values_batch(b"to the deposed one")), PRODUCE_VERSION)
            with Connection(cluster.address(new)) as at_new:
                assert at_new.produce(TOPIC, values_batch(b"to the new one")).error_code == 0
        finally:
            cluster.send(old, signal.SIGCONT)
        _, response = connection.receive()
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code in {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.REQUEST_TIMED_OUT,
        }
    cluster.wait_for_isr(TOPIC, cluster.node_ids)
    assert cluster.stop() == 0, cluster.logs()
    copies = [stored_batches(cluster.home(node) / "data", TOPIC, 0) for node in cluster.node_ids]
    assert copies[0] == copies[1] == copies[2]
    assert [offset for offset, _, _ in copies[0]] == [0, 1]


def cluster_leader_other_than(cluster: ClusterProcesses, old: int) -> int:
    witness = next(node for node in cluster.node_ids if node != old)

    def new_leader() -> int | None:
        leader = cluster.partitions(TOPIC, witness)[0].leader
        if leader in {-1, old} or cluster.partitions(TOPIC, leader)[0].leader != leader:
            return None  # the new leader may hear of it later than the witness
        return leader

    return wait_until(new_leader, "another broker leads", timeout_s=20)
