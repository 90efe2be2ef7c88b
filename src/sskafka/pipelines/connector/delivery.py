"""Send record batches to the leaders of their partitions until all in-sync replicas have acknowledged them.

A batch is retried with the same bytes, so the broker recognizes a duplicate by the producer's sequence in it.
"""

import asyncio
from collections.abc import Iterator, Mapping

from sskafka.client.cluster import Cluster
from sskafka.client.errors import RequestTimeoutError, broker_error, is_retriable
from sskafka.client.offsets import by_topic
from sskafka.client.transactions import FIRST_PRODUCE_VERSION_MAX
from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.offsets import Offsets
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

DELIVERY_TIMEOUT_MS = 120_000


async def deliver(cluster: Cluster, batches: Mapping[TopicPartition, Buffer], transactional_id: str | None) -> Offsets:
    """Send one batch to each partition. Return the base offset of each batch that the brokers report.

    Raises the first error that a retry cannot resolve."""
    left, stored = dict(batches), dict[TopicPartition, int]()

    async def attempt() -> None:
        groups = await cluster.by_leader(left)
        requests = [
            _produce(cluster, leader, {one: left[one] for one in partitions}, transactional_id)
            for leader, partitions in groups.items()
        ]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        failures = [error for outcome in outcomes for error in _settle(outcome, left, stored)]
        for error in sorted(failures, key=is_retriable):  # errors that a retry cannot resolve come first
            raise error

    topics = {partition.topic for partition in batches}
    await cluster.retrying(attempt, topics=topics, deadline_ms=cluster.deadline_ms(DELIVERY_TIMEOUT_MS))
    return stored


async def _produce(
    cluster: Cluster, leader: int, batches: Mapping[TopicPartition, Buffer], transactional_id: str | None
) -> dict[TopicPartition, Exception | int]:
    connection = await cluster.connection_to(leader)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=cluster.config.request_timeout_ms,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[PartitionProduceData(index=one.partition, records=batches[one]) for one in of_topic],
            )
            for name, of_topic in by_topic(batches).items()
        ],
    )
    version = connection.version_for(ProduceRequest, at_most=FIRST_PRODUCE_VERSION_MAX)
    response = await connection.request(request, ProduceResponse, version=version)
    outcomes: dict[TopicPartition, Exception | int] = dict.fromkeys(
        batches, RequestTimeoutError("the response of the broker does not contain the batch")
    )
    for topic in response.responses:
        for answer in topic.partition_responses:
            partition = TopicPartition(topic.name, answer.index)
            failure = _failure(partition, answer.error_code, answer.error_message)
            outcomes[partition] = answer.base_offset if failure is None else failure
    return outcomes


def _settle(
    outcome: dict[TopicPartition, Exception | int] | BaseException,
    left: dict[TopicPartition, Buffer],
    stored: Offsets,
) -> Iterator[Exception]:
    """Remove acknowledged batches from the list, and yield the errors."""
    if isinstance(outcome, dict):
        for partition, result in outcome.items():
            if isinstance(result, Exception):
                yield result
            else:
                left.pop(partition)
                if result >= 0:
                    stored[partition] = result
    elif isinstance(outcome, Exception):
        yield outcome
    else:
        raise outcome


def _failure(partition: TopicPartition, code: int, message: str | None) -> Exception | None:
    if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
        return None
    if code == ErrorCode.MESSAGE_TOO_LARGE:
        return KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"a row for {partition} is larger than the topic's max.message.bytes"
        )
    return broker_error(code, f"writing to {partition}: {message or 'refused'}")
