"""The producers of a partition as its leader knows them, and the abort of hanging transactions.

A hanging transaction is open in a partition but unknown to every coordinator. Nobody ends it, so it blocks the last
stable offset. Brokers that verify transactions prevent this; older logs may contain hanging transactions.
"""

from sskafka.client.cluster import Cluster
from sskafka.client.errors import raise_for
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from sskafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

ADMIN_MARKERS_VERSION = 1
"""Version of WriteTxnMarkers. Later versions carry the coordinator's transaction version, which is unknown here."""


async def describe_producers(cluster: Cluster, partition: TopicPartition) -> list[ProducerState]:
    """Return the active producers of a partition, as known to its leader."""

    async def attempt() -> list[ProducerState]:
        leader = await cluster.leader_of(partition)
        connection = await cluster.connection_to(leader.leader)
        request = DescribeProducersRequest([TopicRequest(partition.topic, [partition.partition])])
        response = await connection.request(request, DescribeProducersResponse)
        (answer,) = response.topics[0].partitions
        raise_for(answer.error_code, answer.error_message or f"producers of {partition}")
        return answer.active_producers

    return await cluster.retrying(attempt, topics=[partition.topic])


async def abort_hanging(cluster: Cluster, partition: TopicPartition, start_offset: int) -> ProducerState:
    """Abort the transaction that started at `start_offset` and return its producer.

    The partition leader is made to write the abort marker that the coordinator will never write."""
    for producer in await describe_producers(cluster, partition):
        if producer.current_txn_start_offset == start_offset:
            await _write_abort(cluster, partition, producer)
            return producer
    raise KafkaError(
        ErrorCode.INVALID_TXN_STATE, f"{partition} has no open transaction that started at offset {start_offset}"
    )


async def _write_abort(cluster: Cluster, partition: TopicPartition, producer: ProducerState) -> None:
    marker = WritableTxnMarker(
        producer.producer_id,
        producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(partition.topic, [partition.partition])],
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )

    async def attempt() -> None:
        leader = await cluster.leader_of(partition)
        connection = await cluster.connection_to(leader.leader)
        request = WriteTxnMarkersRequest([marker])
        response = await connection.request(request, WriteTxnMarkersResponse, version=ADMIN_MARKERS_VERSION)
        (answer,) = response.markers[0].topics[0].partitions
        raise_for(answer.error_code, f"abort marker for {partition}")

    await cluster.retrying(attempt, topics=[partition.topic])
