"""Transactions that hang in a partition: open there, while no coordinator knows of them, so that nobody will end them.

Brokers that verify transactions do not let this happen; logs written before they did may have them. The leader of the
partition is told to write the marker that the coordinator never will.
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

ADMINISTRATORS_VERSION = 1
"""Of WriteTxnMarkers: later ones tell of the coordinator's version of transactions, which is not known here."""


async def describe_producers(cluster: Cluster, partition: TopicPartition) -> list[ProducerState]:
    """The producers that the partition's leader remembers."""

    async def attempt() -> list[ProducerState]:
        leader = await cluster.leader_of(partition)
        connection = await cluster.connection_to(leader.leader)
        request = DescribeProducersRequest([TopicRequest(partition.topic, [partition.partition])])
        response = await connection.request(request, DescribeProducersResponse)
        (answer,) = response.topics[0].partitions
        raise_for(answer.error_code, answer.error_message or f"the producers of {partition}")
        return answer.active_producers

    return await cluster.retrying(attempt, topics=[partition.topic])


async def abort_hanging(cluster: Cluster, partition: TopicPartition, start_offset: int) -> ProducerState:
    """Aborts the transaction that began at `start_offset`; gives the producer whose it was."""
    for producer in await describe_producers(cluster, partition):
        if producer.current_txn_start_offset == start_offset:
            await _write_abort(cluster, partition, producer)
            return producer
    raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"no transaction that began at offset {start_offset} is open there")


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
        response = await connection.request(request, WriteTxnMarkersResponse, version=ADMINISTRATORS_VERSION)
        (answer,) = response.markers[0].topics[0].partitions
        raise_for(answer.error_code, f"the abort marker for {partition}")

    await cluster.retrying(attempt, topics=[partition.topic])
