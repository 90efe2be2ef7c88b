"""Transactions with their age, the producers of a partition, and aborts."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from sskafka.client.partition_producers import abort_hanging, describe_producers
from sskafka.client.transactions import (
    NO_TIMEOUT_MS,
    ListedTransaction,
    abort_open,
    describe,
    describe_listed,
    list_transactions,
)
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import CONFLICT, NOT_FOUND, documented
from sskafka.servers.http.routes.paging import Limit, Name, Search
from sskafka.servers.http.routes.records import PartitionNumber
from sskafka.wire.messages.describe_producers import ProducerState
from sskafka.wire.messages.describe_transactions import TransactionState

DESCRIBED_MAX = 1_000
ENDED_STATES = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})
_NOT_STARTED = -1

TransactionalId = Annotated[str, Path(min_length=1, max_length=1_000)]


class TransactionSummary(BaseModel):
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int
    open_for_ms: Annotated[int | None, Field(description="Age of the open transaction; null if none is open.")]
    timeout_ms: Annotated[int | None, Field(description="null: not known, or it never times out.")]
    partitions: Annotated[list[str], Field(description="Partitions of the open transaction.")]


class Transactions(BaseModel):
    transactions: Annotated[list[TransactionSummary], Field(description="Open ones first, oldest first.")]
    left_out: int


class TransactionDetails(TransactionSummary):
    producer_epoch: int


class Aborted(BaseModel):
    transactional_id: str
    fenced_below_epoch: Annotated[int, Field(description="Producers with a lower epoch can no longer write.")]


class PartitionProducer(BaseModel):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: Annotated[int | None, Field(description="null if no transaction is open.")]


class PartitionProducers(BaseModel):
    producers: list[PartitionProducer]


class HangingTransaction(BaseModel):
    start_offset: Annotated[int, Field(ge=0, le=2**63 - 1)]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["transactions"])
    missing = documented({NOT_FOUND: "There is no such transactional id."})

    @router.get("/transactions", summary="The transactional ids of the cluster, open transactions first")
    async def transactions(
        request: Request,
        search: Search = "",
        open_only: Annotated[bool, Query(alias="open", description="Only open transactions.")] = False,
        limit: Limit = 100,
    ) -> Transactions:
        async with context.clients(request) as clients:
            listed = await list_transactions(clients.cluster)
            found = [one for one in listed if search in one.transactional_id and (not open_only or _is_open(one))]
            found.sort(key=lambda one: (not _is_open(one), one.transactional_id))
            states = await describe_listed(clients.cluster, filter(_is_open, found[:DESCRIBED_MAX]))
        now_ms = context.clock.now_ms()
        shown = [_summary(one, states.get(one.transactional_id), now_ms) for one in found]
        shown.sort(key=lambda one: -1 if one.open_for_ms is None else one.open_for_ms, reverse=True)
        return Transactions(transactions=shown[:limit], left_out=max(0, len(shown) - limit))

    @router.get("/transactions/{transactional_id:path}", summary="One transactional id", responses=missing)
    async def transaction(transactional_id: TransactionalId, request: Request) -> TransactionDetails:
        async with context.clients(request) as clients:
            state = await describe(clients.cluster, transactional_id)
            listed = await list_transactions(clients.cluster)
        coordinator = next((one.coordinator for one in listed if one.transactional_id == transactional_id), -1)
        known = ListedTransaction(transactional_id, state.producer_id, state.transaction_state, coordinator)
        summary = _summary(known, state, context.clock.now_ms())
        return TransactionDetails(**summary.model_dump(), producer_epoch=state.producer_epoch)

    @router.post(
        "/transactions/{transactional_id:path}/abort",
        summary="Abort the open transaction of an id and fence its producers",
        responses=missing,
    )
    async def abort(transactional_id: TransactionalId, request: Request) -> Aborted:
        async with context.clients(request) as clients:
            taken = await abort_open(clients.administration, transactional_id)
        return Aborted(transactional_id=transactional_id, fenced_below_epoch=taken.producer_epoch)

    return router


def producer_routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["transactions"])
    path = "/topics/{topic_name}/partitions/{partition}/producers"
    no_partition = {NOT_FOUND: "There is no such topic or partition."}

    @router.get(
        path, summary="The producers of a partition, as its leader knows them", responses=documented(no_partition)
    )
    async def producers(topic_name: Name, partition: PartitionNumber, request: Request) -> PartitionProducers:
        async with context.clients(request) as clients:
            found = await describe_producers(clients.cluster, TopicPartition(topic_name, partition))
        return PartitionProducers(producers=[_producer(state) for state in found])

    @router.post(
        path + "/abort",
        summary="Abort a hanging transaction, which no coordinator knows",
        responses=documented({**no_partition, CONFLICT: "No transaction is open that started there."}),
    )
    async def abort(
        topic_name: Name, partition: PartitionNumber, hanging: HangingTransaction, request: Request
    ) -> PartitionProducer:
        at = TopicPartition(topic_name, partition)
        async with context.clients(request) as clients:
            return _producer(await abort_hanging(clients.administration, at, hanging.start_offset))

    return router


def _is_open(one: ListedTransaction) -> bool:
    return one.state not in ENDED_STATES


def _summary(listed: ListedTransaction, state: TransactionState | None, now_ms: int) -> TransactionSummary:
    open_for_ms = timeout_ms = None
    partitions: list[str] = []
    if state is not None:
        partitions = [f"{topic.topic}-{index}" for topic in state.topics for index in topic.partitions]
        timeout_ms = None if state.transaction_timeout_ms == NO_TIMEOUT_MS else state.transaction_timeout_ms
        if state.transaction_start_time_ms != _NOT_STARTED and _is_open(listed):
            open_for_ms = max(0, now_ms - state.transaction_start_time_ms)
    return TransactionSummary(**listed._asdict(), open_for_ms=open_for_ms, timeout_ms=timeout_ms, partitions=partitions)


def _producer(state: ProducerState) -> PartitionProducer:
    start = state.current_txn_start_offset
    return PartitionProducer(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp_ms=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        transaction_start_offset=None if start < 0 else start,
    )
