"""Three nodes, and a bit of one's metadata log flips: that node fetches what it lost from the others by itself."""

from pathlib import Path

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from waiting import wait_until

from sskafka.records.batch import iter_headers

pytestmark = pytest.mark.long

TOPICS = 12


def metadata_file(cluster: ClusterProcesses, node_id: int) -> Path:
    return cluster.home(node_id) / "metadata" / "__cluster_metadata-0" / "00000000000000000000.log"


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    headers = list(iter_headers(bytes(content)))
    position, header = headers[len(headers) // 2]
    content[position + header.size_bytes - 1] ^= 1
    path.write_bytes(content)


def create_topics(cluster: ClusterProcesses) -> None:
    for number in range(TOPICS):
        cluster.create_topic(f"topic-{number}", partitions=1)


def check_complete(cluster: ClusterProcesses, node_id: int) -> None:
    """The node knows all topics, and its log file is a copy of the others'."""
    for number in range(TOPICS):
        assert cluster.partitions(f"topic-{number}", at=node_id)[0].leader > 0
    wait_until(lambda: _is_copy(cluster, node_id), f"the metadata log of node {node_id} is complete")


def _is_copy(cluster: ClusterProcesses, node_id: int) -> bool:
    other = next(other for other in cluster.node_ids if other != node_id)
    contents = [metadata_file(cluster, each).read_bytes().rstrip(b"\0") for each in (node_id, other)]
    shorter = min(map(len, contents))
    return contents[0][:shorter] == contents[1][:shorter] and shorter > 0


def test_a_damaged_follower_heals_by_itself(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    create_topics(cluster)
    damaged = next(node_id for node_id in cluster.node_ids if node_id != cluster.controller())
    cluster.kill(damaged)
    flip_a_bit(metadata_file(cluster, damaged))
    cluster.start_broker(damaged)
    check_complete(cluster, damaged)
    assert "fetches what is lost" in cluster.logs()
    assert "the metadata log is complete again" in cluster.logs()


def test_a_damaged_leader_is_replaced_and_heals(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    create_topics(cluster)
    damaged = cluster.controller()
    cluster.kill(damaged)
    flip_a_bit(metadata_file(cluster, damaged))
    cluster.start_broker(damaged)
    check_complete(cluster, damaged)
    cluster.create_topic("afterwards")


def test_all_restart_and_two_are_damaged(start_cluster: StartCluster) -> None:
    """The last leader has everything: the other two vote for it, and for nobody else."""
    cluster = start_cluster(3)
    create_topics(cluster)
    leader = cluster.controller()
    damaged = [node_id for node_id in cluster.node_ids if node_id != leader]
    cluster.kill(*cluster.node_ids)
    for node_id in damaged:
        flip_a_bit(metadata_file(cluster, node_id))
    for node_id in cluster.node_ids:
        cluster.start_broker(node_id, wait=False)
    cluster.wait_for_brokers(cluster.node_ids)
    assert cluster.controller() == leader
    for node_id in damaged:
        check_complete(cluster, node_id)
