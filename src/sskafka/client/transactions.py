"""Requests to the transaction coordinator. Keeps no state: a transaction is a value, which another process may end.

    first version    the producer adds partitions (AddPartitionsToTxn); the producer epoch stays the same
    second version   leaders add partitions when they are written to, and the end of each transaction bumps the producer
                     epoch (KIP-890); used if the cluster has finalized transaction.version 2

Every request is retried until its outcome is known. A repeated EndTxn gets the same response as the first one.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from sskafka.client.cluster import Cluster
from sskafka.client.coordinators import CoordinatorType, coordinator_connection
from sskafka.client.errors import UnsupportedApiError, raise_for
from sskafka.client.offsets import by_topic
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from sskafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from sskafka.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from sskafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sskafka.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from sskafka.wire.schema import Message

R = TypeVar("R", bound=Message)

FEATURE = "transaction.version"
FIRST_VERSION = 0
SECOND_VERSION = 2
ADD_PARTITIONS_VERSION_MAX = 3  # later versions are for brokers
FIRST_END_VERSION_MAX = 4
FIRST_OFFSETS_VERSION_MAX = 4
FIRST_PRODUCE_VERSION_MAX = 11
TWO_PHASE_FROM = 6
"""First version of InitProducerId with two-phase commit (KIP-939)."""
TAKE_OVER_TIMEOUT_MS = 60_000
NO_TIMEOUT_MS = 2**31 - 1
"""Timeout that coordinators report for transactions that do not time out."""


class Transaction(NamedTuple):
    """Everything needed to write to a transaction, or to end it from another process."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    version: int = FIRST_VERSION

    @property
    def bumps_epochs(self) -> bool:
        return self.version >= SECOND_VERSION


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int
    """Node id of the transaction's coordinator."""


async def version_of(cluster: Cluster) -> int:
    """Return the transaction version that the cluster has finalized: FIRST_VERSION or SECOND_VERSION."""
    features = (await cluster.any_connection()).features
    return SECOND_VERSION if features.get(FEATURE, 0) >= SECOND_VERSION else FIRST_VERSION


async def initialize(
    cluster: Cluster,
    transactional_id: str,
    timeout_ms: int,
    last: Transaction | None = None,
    *,
    two_phase: bool = False,
) -> Transaction:
    """Initialize the transactional id: abort its open transaction and fence its previous producer.

    With `last`, succeed only if `last` is still the current producer; otherwise raise PRODUCER_FENCED.
    With `two_phase`, transactions of the id do not time out (KIP-939). Raise TRANSACTIONAL_ID_AUTHORIZATION_FAILED if
    the brokers do not allow two-phase commit, and UnsupportedApiError if they do not support it."""
    request = InitProducerIdRequest(
        transactional_id,
        timeout_ms,
        -1 if last is None else last.producer_id,
        -1 if last is None else last.producer_epoch,
        enable2_pc=two_phase,
    )
    oldest = TWO_PHASE_FROM if two_phase else 0
    version = await cluster.retrying(lambda: version_of(cluster))

    async def attempt() -> Transaction:
        response = await _at_coordinator(cluster, transactional_id, request, InitProducerIdResponse, oldest=oldest)
        raise_for(response.error_code, f"InitProducerId of {transactional_id!r}")
        return Transaction(transactional_id, response.producer_id, response.producer_epoch, version)

    return await cluster.retrying(attempt)


async def add_partitions(cluster: Cluster, transaction: Transaction, partitions: Iterable[TopicPartition]) -> None:
    name, producer_id, producer_epoch, _ = transaction
    topics = [
        AddPartitionsToTxnTopic(topic, [item.partition for item in items])
        for topic, items in by_topic(partitions).items()
    ]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=producer_epoch,
        v3_and_below_topics=topics,
    )

    async def attempt() -> None:
        response = await _at_coordinator(cluster, name, request, AddPartitionsToTxnResponse, ADD_PARTITIONS_VERSION_MAX)
        results = [item for topic in response.results_by_topic_v3_and_below for item in topic.results_by_partition]
        codes = {item.partition_error_code for item in results} - {ErrorCode.OPERATION_NOT_ATTEMPTED}
        for code in sorted(codes):
            raise_for(code, f"adding partitions to the transaction of {name!r}")

    await cluster.retrying(attempt)


async def commit_offsets(
    cluster: Cluster, transaction: Transaction, group_id: str, offsets: Mapping[TopicPartition, int]
) -> None:
    """Commit offsets of a group as part of the transaction; they become effective when it commits."""
    if not transaction.bumps_epochs:
        await _add_group(cluster, transaction, group_id)
    topics = [
        TxnOffsetCommitRequestTopic(
            topic, [TxnOffsetCommitRequestPartition(item.partition, offsets[item]) for item in items]
        )
        for topic, items in by_topic(offsets).items()
    ]
    name, producer_id, producer_epoch, _ = transaction
    request = TxnOffsetCommitRequest(name, group_id, producer_id, producer_epoch, topics=topics)
    newest = None if transaction.bumps_epochs else FIRST_OFFSETS_VERSION_MAX

    async def attempt() -> None:
        connection = await coordinator_connection(cluster, CoordinatorType.GROUP, group_id)
        version = connection.version_for(TxnOffsetCommitRequest, at_most=newest)
        response = await connection.request(request, TxnOffsetCommitResponse, version=version)
        for topic in response.topics:
            for answer in topic.partitions:
                raise_for(answer.error_code, f"offset of {topic.name}-{answer.partition_index}")

    await cluster.retrying(attempt)


async def _add_group(cluster: Cluster, transaction: Transaction, group_id: str) -> None:
    name, producer_id, producer_epoch, _ = transaction
    request = AddOffsetsToTxnRequest(name, producer_id, producer_epoch, group_id)

    async def attempt() -> None:
        response = await _at_coordinator(cluster, name, request, AddOffsetsToTxnResponse)
        raise_for(response.error_code, f"adding group {group_id!r} to the transaction of {name!r}")

    await cluster.retrying(attempt)


async def end(cluster: Cluster, transaction: Transaction, *, commit: bool) -> Transaction:
    """Commit or abort a transaction, which any producer may have started; return the identity for the next one.

    INVALID_TXN_STATE, PRODUCER_FENCED and INVALID_PRODUCER_EPOCH mean that it already ended, with another result."""
    name, producer_id, producer_epoch, _ = transaction
    request = EndTxnRequest(name, producer_id, producer_epoch, commit)
    newest = None if transaction.bumps_epochs else FIRST_END_VERSION_MAX

    async def attempt() -> Transaction:
        response = await _at_coordinator(cluster, name, request, EndTxnResponse, newest)
        raise_for(response.error_code, f"ending the transaction of {name!r}")
        if not transaction.bumps_epochs:
            return transaction
        return transaction._replace(producer_id=response.producer_id, producer_epoch=response.producer_epoch)

    return await cluster.retrying(attempt)


async def describe(cluster: Cluster, transactional_id: str) -> TransactionState:
    async def attempt() -> TransactionState:
        request = DescribeTransactionsRequest([transactional_id])
        response = await _at_coordinator(cluster, transactional_id, request, DescribeTransactionsResponse)
        (state,) = response.transaction_states
        known = state.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        raise_for(state.error_code, f"{'' if known else 'there is no '}transactional id {transactional_id!r}")
        return state

    return await cluster.retrying(attempt)


async def abort_open(cluster: Cluster, transactional_id: str) -> Transaction:
    """Abort the open transaction of the id, if there is one, and fence its producers. Return the new producer.

    Raise KafkaError TRANSACTIONAL_ID_NOT_FOUND for an id that does not exist: InitProducerId would create it."""
    await describe(cluster, transactional_id)
    return await initialize(cluster, transactional_id, TAKE_OVER_TIMEOUT_MS)


async def describe_listed(cluster: Cluster, listed: Iterable[ListedTransaction]) -> dict[str, TransactionState]:
    """Describe transactions with one request to each coordinator. Transactions whose coordinator moves in the meantime
    are missing."""
    ids: dict[int, list[str]] = {}
    for one in listed:
        ids.setdefault(one.coordinator, []).append(one.transactional_id)
    found: dict[str, TransactionState] = {}
    for coordinator, names in ids.items():
        connection = await cluster.connection_to(coordinator)
        response = await connection.request(DescribeTransactionsRequest(names), DescribeTransactionsResponse)
        described = (state for state in response.transaction_states if state.error_code == ErrorCode.NONE)
        found |= {state.transactional_id: state for state in described}
    return found


async def list_transactions(cluster: Cluster, states: Iterable[str] = ()) -> list[ListedTransaction]:
    """List the transactions of all brokers that are in one of `states` (empty: any state).

    If a broker fails in the meantime, all brokers are asked again, because others now coordinate its transactions."""
    wanted = list(states)

    async def attempt() -> list[ListedTransaction]:
        brokers = await cluster.brokers()
        return [one for broker in brokers for one in await _listed_by(cluster, broker.node_id, wanted)]

    return await cluster.retrying(attempt)


async def _listed_by(cluster: Cluster, node_id: int, states: list[str]) -> list[ListedTransaction]:
    connection = await cluster.connection_to(node_id)
    response = await connection.request(ListTransactionsRequest(state_filters=states), ListTransactionsResponse)
    raise_for(response.error_code, f"transactions of broker {node_id}")
    return [
        ListedTransaction(item.transactional_id, item.producer_id, item.transaction_state, node_id)
        for item in response.transaction_states
    ]


async def _at_coordinator(
    cluster: Cluster,
    transactional_id: str,
    request: Message,
    response_class: type[R],
    newest: int | None = None,
    *,
    oldest: int = 0,
) -> R:
    connection = await coordinator_connection(cluster, CoordinatorType.TRANSACTION, transactional_id)
    version = connection.version_for(type(request), at_most=newest)
    if version < oldest:
        name = type(request).__name__.removesuffix("Request")
        raise UnsupportedApiError(f"the broker at {connection.address} has {name} only up to version {version}")
    return await connection.request(request, response_class, version=version)
