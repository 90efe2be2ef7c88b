"""Strangers who claim to be voters: the quorum keeps its leader and its epoch, also over a restart."""

from typing import Any

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import METADATA_TOPIC
from sskafka.wire.messages import begin_quorum_epoch, end_quorum_epoch, vote

FAR = 2**31 - 1
NODES = (1, 2, 3)


def epoch_of(cluster: ClusterProcesses) -> int:
    return int(cluster.quorum().leader_epoch)


def claims(sender: int, target: int, epoch: int) -> list[tuple[Any, int]]:
    candidate = vote.RequestPartitionData(
        replica_epoch=epoch, replica_id=sender, last_offset_epoch=epoch, last_offset=10**9
    )
    leader = begin_quorum_epoch.RequestPartitionData(leader_id=sender, leader_epoch=epoch)
    ended = end_quorum_epoch.RequestPartitionData(leader_id=sender, leader_epoch=epoch, preferred_successors=[target])
    return [
        (vote.VoteRequest(None, target, [vote.RequestTopicData(METADATA_TOPIC, [candidate])]), 2),
        (
            begin_quorum_epoch.BeginQuorumEpochRequest(
                None, target, [begin_quorum_epoch.RequestTopicData(METADATA_TOPIC, [leader])]
            ),
            1,
        ),
        (
            end_quorum_epoch.EndQuorumEpochRequest(None, [end_quorum_epoch.RequestTopicData(METADATA_TOPIC, [ended])]),
            0,
        ),
    ]


def claim_everything(cluster: ClusterProcesses, *epochs: int) -> None:
    for target in cluster.running():
        with Connection(cluster.address(target)) as stranger:
            for sender in (node for node in NODES if node != target):
                for epoch in epochs:
                    for request, version in claims(sender, target, epoch):
                        answer = stranger.call(request, version)
                        (partition,) = answer.topics[0].partitions
                        assert partition.leader_epoch < FAR, "the epoch was believed"


@pytest.mark.timeout(180)
def test_claims_of_strangers_do_not_stop_the_controllers(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    cluster.create_topic("before")
    leader, epoch = cluster.controller(), epoch_of(cluster)
    claim_everything(cluster, epoch, epoch + 1, epoch + 1000, FAR)
    cluster.create_topic("meanwhile")
    assert (cluster.controller(), epoch_of(cluster)) == (leader, epoch), "the leader was deposed"
    cluster.kill(leader)
    claim_everything(cluster, FAR)
    wait_until(lambda: _is_led_by_another(cluster, leader), "the others elect a leader", timeout_s=30)
    cluster.start_broker(leader)
    cluster.create_topic("after")
    assert epoch_of(cluster) < 5000


def _is_led_by_another(cluster: ClusterProcesses, dead: int) -> bool:
    (at, *_) = cluster.running()
    with Connection(cluster.address(at)) as connection:
        from sskafka.wire.messages.metadata import MetadataRequest

        controller = connection.call(MetadataRequest(topics=[]), version=12).controller_id
    return controller not in {-1, dead}


def test_a_vote_for_another_cluster_is_refused(start_cluster: StartCluster) -> None:
    cluster = start_cluster(2)
    with Connection(cluster.address(1)) as stranger:
        request, version = claims(2, 1, 5)[0]
        request.cluster_id = "another"
        assert stranger.call(request, version).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
