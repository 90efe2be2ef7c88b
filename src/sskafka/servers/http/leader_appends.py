"""Send batches to a partition's leader: one Produce request each, answered with the offset of the last record.

Nothing is retried here: the caller decides what a failure means for the records.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import RequestTimeoutError, produce_error
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.records.builder import BatchBuilder, NewRecord, encoded_size_max
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

BATCH_BYTES = 512 * 1024


class BuiltBatch(NamedTuple):
    data: bytearray
    records: int


def batches_of(records: Sequence[NewRecord], now_ms: int) -> Iterator[BuiltBatch]:
    """Yield batches in order, each within BATCH_BYTES unless a single record is larger."""
    builder, count = BatchBuilder(), 0
    for record in records:
        if count and builder.size_bytes + encoded_size_max(record.key, record.value, ()) > BATCH_BYTES:
            yield BuiltBatch(builder.build(), count)
            builder, count = BatchBuilder(), 0
        builder.append(record.key, record.value, (), now_ms)
        count += 1
    yield BuiltBatch(builder.build(), count)


async def append(cluster: Cluster, partition: TopicPartition, batch: BuiltBatch) -> int:
    """Append the batch. Return the offset of the last record once the leader has it."""
    connection = await cluster.connection_to((await cluster.leader_of(partition)).leader)
    response = await connection.request(_request(cluster, partition, batch, acks=1), ProduceResponse)
    answers = [answer for topic in response.responses for answer in topic.partition_responses]
    if not answers:
        raise RequestTimeoutError(f"the leader did not answer for {partition}")
    if answers[0].error_code != ErrorCode.NONE:
        raise produce_error(answers[0].error_code, answers[0].error_message, partition)
    return answers[0].base_offset + batch.records - 1


async def hand_over(cluster: Cluster, partition: TopicPartition, batch: BuiltBatch) -> None:
    """Write the batch to the leader's connection without waiting for the outcome."""
    connection = await cluster.connection_to((await cluster.leader_of(partition)).leader)
    await connection.send(_request(cluster, partition, batch, acks=0))


def _request(cluster: Cluster, partition: TopicPartition, batch: BuiltBatch, acks: int) -> ProduceRequest:
    topic_id = cluster.view.topics[partition.topic].topic_id
    data = [PartitionProduceData(partition.partition, batch.data)]
    return ProduceRequest(
        acks=acks,
        timeout_ms=cluster.config.request_timeout_ms,
        topic_data=[TopicProduceData(name=partition.topic, topic_id=topic_id, partition_data=data)],
    )
