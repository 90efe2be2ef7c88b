"""Transactions that one process begins and another ends.

A task begins a transaction, writes and stops there; the driver, in another process, commits or aborts it by the
handle that the task hands over. The first transaction protocol is used (AddPartitionsToTxn, EndTxn up to version 4):
every Kafka since 0.11 has it, it keeps the epoch when a transaction ends, and so a commit may be sent twice.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import UnsupportedApiError, raise_for
from sskafka.client.offsets import by_topic
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.coordinators import CoordinatorType, coordinator_connection
from sskafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from sskafka.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from sskafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sskafka.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_ADD_PARTITIONS_VERSION_MAX = 3
_END_TXN_VERSION_MAX = 4
PRODUCE_VERSION_MAX = 11
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""What a producer hears whose transactional id was taken over."""
ABORTED = FENCED | {ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
"""What the end of a transaction meets that is no longer open: it was aborted, by its timeout or by a newer producer."""


class Transaction(NamedTuple):
    """Everything that is needed to end a transaction from elsewhere."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


async def begin(
    cluster: Cluster, transactional_id: str, timeout_ms: int, last: Transaction | None = None
) -> Transaction:
    """Takes the id over: an open transaction of its is aborted, whoever had it before is fenced.

    With `last` it is taken over only from that holder: a KafkaError of FENCED says that somebody else has it."""

    async def attempt() -> Transaction:
        connection = await coordinator_connection(cluster, CoordinatorType.TRANSACTION, transactional_id)
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1 if last is None else last.producer_id,
            producer_epoch=-1 if last is None else last.producer_epoch,
        )
        response = await connection.request(request, InitProducerIdResponse)
        raise_for(response.error_code, f"InitProducerId of {transactional_id}")
        return Transaction(transactional_id, response.producer_id, response.producer_epoch)

    return await cluster.retrying(attempt)


async def add_partitions(cluster: Cluster, transaction: Transaction, partitions: Iterable[TopicPartition]) -> None:
    topics = [
        AddPartitionsToTxnTopic(name=name, partitions=[one.partition for one in of_topic])
        for name, of_topic in by_topic(partitions).items()
    ]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction.transactional_id,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.producer_epoch,
        v3_and_below_topics=topics,
    )

    async def attempt() -> None:
        key = transaction.transactional_id
        connection = await coordinator_connection(cluster, CoordinatorType.TRANSACTION, key)
        version = connection.version_for(AddPartitionsToTxnRequest, at_most=_ADD_PARTITIONS_VERSION_MAX)
        response = await connection.request(request, AddPartitionsToTxnResponse, version=version)
        for topic in response.results_by_topic_v3_and_below:
            for answer in topic.results_by_partition:
                code = answer.partition_error_code
                if code != ErrorCode.OPERATION_NOT_ATTEMPTED:
                    raise_for(code, f"{topic.name}-{answer.partition_index} in the transaction of {key}")

    await cluster.retrying(attempt)


async def end(cluster: Cluster, transaction: Transaction, *, commit: bool) -> None:
    """Commits or aborts; doing so again is fine. A KafkaError of ABORTED says that it was aborted before."""
    request = EndTxnRequest(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=commit,
    )

    async def attempt() -> None:
        key = transaction.transactional_id
        connection = await coordinator_connection(cluster, CoordinatorType.TRANSACTION, key)
        version = connection.version_for(EndTxnRequest, at_most=_END_TXN_VERSION_MAX)
        response = await connection.request(request, EndTxnResponse, version=version)
        raise_for(response.error_code, f"the end of the transaction of {key}")

    await cluster.retrying(attempt)


async def state_of(cluster: Cluster, transactional_id: str) -> str:
    """The coordinator's word for the state of an id, or why it cannot tell."""

    async def attempt() -> str:
        connection = await coordinator_connection(cluster, CoordinatorType.TRANSACTION, transactional_id)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        response = await connection.request(request, DescribeTransactionsResponse)
        raise_for(response.transaction_states[0].error_code)
        return response.transaction_states[0].transaction_state

    try:
        return await cluster.retrying(attempt)
    except Exception as error:
        return f"unknown: {error}"


async def open_transactions(cluster: Cluster, prefix: str) -> list[str]:
    """Transactional ids that begin with `prefix` and have an open transaction; nothing where brokers cannot list."""
    found: list[str] = []
    for broker in await cluster.retrying(cluster.brokers):
        try:
            states = await cluster.retrying(partial(_open_at, cluster, broker.node_id))
        except UnsupportedApiError:
            return []
        found += (transactional_id for transactional_id in states if transactional_id.startswith(prefix))
    return sorted(found)


async def _open_at(cluster: Cluster, node_id: int) -> list[str]:
    connection = await cluster.connection_to(node_id)
    request = ListTransactionsRequest(state_filters=["Ongoing"])
    response = await connection.request(request, ListTransactionsResponse)
    raise_for(response.error_code, "ListTransactions")
    return [state.transactional_id for state in response.transaction_states]
