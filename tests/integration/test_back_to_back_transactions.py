"""The next transaction begins before every marker of the last one is written (transaction version 2).

The marker carries the epoch of the next transaction. Here it arrives at a leader, or at the coordinator of a group,
while that waits for the coordinator of the transaction, which is paused until then.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from transaction_wire import RETRIED, WireProducer, wait_for_state
from waiting import wait_until
from wire_connection import Connection, values_batch

from sskafka.coordination.internal_topics import partition_of
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sskafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from sskafka.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

TOPIC, STATE, OFFSETS = "orders", "__transaction_state", "__consumer_offsets"
GROUP, TRANSACTION = 0, 1
PRODUCE_VERSION, OFFSET_COMMIT_VERSION, MARKERS_VERSION = 12, 5, 2
SETTINGS = {
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "offsets.topic.num.partitions": 2,
    "offsets.topic.replication.factor": 1,
}


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ClusterProcesses:
    """Every partition has one replica: a paused broker holds up nothing but what it leads."""
    started = start_cluster(3, SETTINGS)
    started.create_topic(TOPIC, 3, 1)
    for key_type, topic in (GROUP, OFFSETS), (TRANSACTION, STATE):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
        wait_until(lambda r=request: started.ask(r, 4).coordinators[0].error_code == 0, "there is a coordinator")
        for node_id in started.running():
            wait_until(lambda at=node_id, name=topic: len(started.partitions(name, at)) == 2, "everybody knows it")
    return started


def elsewhere(cluster: ClusterProcesses, topic: str, coordinator: int) -> int:
    """A partition that the coordinator of the transaction does not lead."""
    return next(index for index, state in cluster.partitions(topic).items() if state.leader != coordinator)


def id_kept_in(partition: int) -> str:
    return next(name for name in map(str, range(100)) if partition_of(name, 2) == partition)


def transactional_id_away_from(cluster: ClusterProcesses, broker_id: int) -> str:
    return id_kept_in(elsewhere(cluster, STATE, broker_id))


@contextmanager
def paused(cluster: ClusterProcesses, broker_id: int) -> Iterator[None]:
    cluster.send(broker_id, signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.send(broker_id, signal.SIGCONT)


def end_offset(connection: Connection, topic: str, partition: int) -> int:
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp=-1)])
    response = connection.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), 5)
    return int(response.topics[0].partitions[0].offset)


def marker_of_last_transaction(
    producer: WireProducer, topic: str, partition: int, coordinator_epoch: int
) -> WriteTxnMarkersRequest:
    """Once more, as a coordinator sends it that did not hear the first answer."""
    identity, topics = (producer.producer_id, producer.epoch), [WritableTxnMarkerTopic(topic, [partition])]
    return WriteTxnMarkersRequest([WritableTxnMarker(*identity, True, topics, coordinator_epoch, 2)])


def answer_with_marker_in_between(
    cluster: ClusterProcesses, producer: WireProducer, request: Any, version: int, topic: str, partition: int
) -> Any:
    """Of a request to the leader of the partition, on whose question the coordinator of the transaction is silent."""
    coordinator, coordinator_epoch, *_ = cluster.partitions(STATE)[partition_of(producer.transactional_id, 2)]
    address = cluster.address(cluster.partitions(topic)[partition].leader)
    with Connection(address) as connection, Connection(address) as beside:
        before = end_offset(beside, topic, partition)
        with paused(cluster, coordinator):
            asked = connection.send(request, version)
            marker = marker_of_last_transaction(producer, topic, partition, coordinator_epoch)
            connection.send(marker, MARKERS_VERSION)
            wait_until(lambda: end_offset(beside, topic, partition) > before, "the marker is written")
        answered, response = connection.receive()
        assert answered == asked
        _, marked = connection.receive()
        assert marked.markers[0].topics[0].partitions[0].error_code == 0
        return response


def test_the_first_batch_is_written(cluster: ClusterProcesses) -> None:
    leader = cluster.partitions(TOPIC)[0].leader
    transactional_id = transactional_id_away_from(cluster, leader)
    coordinator = cluster.partitions(STATE)[partition_of(transactional_id, 2)].leader
    with Connection(cluster.address(coordinator)) as connection, Connection(cluster.address(leader)) as at_leader:
        producer = WireProducer(connection, transactional_id).initialize()
        writer = WireProducer(at_leader, transactional_id)
        writer.producer_id, writer.epoch = producer.producer_id, producer.epoch
        writer.write(TOPIC, b"first")
        assert producer.end() is ErrorCode.NONE
        wait_for_state(connection, transactional_id, "CompleteCommit")
        identity = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "base_sequence": 0}
        batch = values_batch(b"second", transactional=True, **identity)
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(0, batch)])
        request = ProduceRequest(transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data])
        response = answer_with_marker_in_between(cluster, producer, request, PRODUCE_VERSION, TOPIC, 0)
        assert ErrorCode(response.responses[0].partition_responses[0].error_code) is ErrorCode.NONE
        assert producer.end() is ErrorCode.NONE


def test_the_first_offsets_are_written(cluster: ClusterProcesses) -> None:
    keeper = cluster.partitions(OFFSETS)[0].leader
    transactional_id, group = transactional_id_away_from(cluster, keeper), id_kept_in(0)
    coordinator = cluster.partitions(STATE)[partition_of(transactional_id, 2)].leader
    with Connection(cluster.address(coordinator)) as connection, Connection(cluster.address(keeper)) as at_keeper:
        producer = WireProducer(connection, transactional_id).initialize()

        def commit(offset: int) -> TxnOffsetCommitRequest:
            topics = [TxnOffsetCommitRequestTopic(TOPIC, [TxnOffsetCommitRequestPartition(0, offset)])]
            return TxnOffsetCommitRequest(transactional_id, group, producer.producer_id, producer.epoch, topics=topics)

        def error_of(response: Any) -> ErrorCode:
            return ErrorCode(response.topics[0].partitions[0].error_code)

        def is_first_committed() -> bool:
            return error_of(at_keeper.call(commit(1), OFFSET_COMMIT_VERSION)) not in RETRIED

        wait_until(is_first_committed, "the first offset is taken")
        assert producer.end() is ErrorCode.NONE
        wait_for_state(connection, transactional_id, "CompleteCommit")
        response = answer_with_marker_in_between(cluster, producer, commit(2), OFFSET_COMMIT_VERSION, OFFSETS, 0)
        assert error_of(response) is ErrorCode.NONE
        assert producer.end() is ErrorCode.NONE

        def committed() -> int:
            request = OffsetFetchRequest(group_id=group, topics=[OffsetFetchRequestTopic(TOPIC, [0])])
            return int(at_keeper.call(request, 5).topics[0].partitions[0].committed_offset)

        wait_until(lambda: committed() == 2, "the second offset counts")
