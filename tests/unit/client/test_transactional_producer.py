"""The transactional producer against a scripted cluster, in both versions of the protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_cluster import Fate, ScriptedCluster
from virtual_loop import run_virtually

from sskafka.client.config import ProducerConfig
from sskafka.client.errors import ConnectionLostError
from sskafka.client.transactional_producer import TransactionalProducer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.transactions.metadata import TransactionState
from sskafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from sskafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from sskafka.wire.messages.end_txn import EndTxnRequest
from sskafka.wire.messages.metadata import MetadataRequest
from sskafka.wire.messages.produce import ProduceRequest
from sskafka.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

INPUT = TopicPartition("input", 0)
Scenario = Callable[[TransactionalProducer], Awaitable[None]]


@pytest.fixture(params=[False, True], ids=["first", "second"])
def cluster(request: pytest.FixtureRequest) -> ScriptedCluster:
    return ScriptedCluster(partitions=2, bumps_epochs=request.param)


def run(cluster: ScriptedCluster, scenario: Scenario, **properties: Any) -> None:
    async def work() -> None:
        async with (
            asyncio.timeout(600),
            cluster.client(default_api_timeout_ms=1000) as client,
            TransactionalProducer(client, "orders-1", ProducerConfig(**{"linger_ms": 0, **properties})) as producer,
        ):
            await scenario(producer)

    run_virtually(work())


def delayed(kind: type, ms: float) -> Callable[[Any], Fate]:
    return lambda request: Fate(to_broker_ms=ms) if isinstance(request, kind) else Fate()


def unheard(kind: type) -> Callable[[Any], Fate]:
    return lambda request: Fate(is_answer_lost=isinstance(request, kind))


@pytest.mark.parametrize("delaying", [MetadataRequest, AddPartitionsToTxnRequest, ProduceRequest])
def test_a_batch_does_not_enter_the_next_transaction(cluster: ScriptedCluster, delaying: type) -> None:
    """The sender waits for an answer while the transaction is aborted."""

    async def scenario(producer: TransactionalProducer) -> None:
        await producer.choose_partition("t", None, 0)
        await producer.begin()
        aborted = await producer.send("t", b"aborted", partition=0)
        cluster.fate = delayed(delaying, 50)
        producer._cluster.forget("t")
        await asyncio.sleep(0.01)
        await producer.abort_transaction()
        cluster.fate = delayed(delaying, 1)
        async with producer.transaction():
            await (await producer.send("t", b"committed", partition=0))
            await asyncio.sleep(0.1)
        await asyncio.gather(aborted, return_exceptions=True)

    run(cluster, scenario)
    assert cluster.committed() == [b"committed"]


def test_records_belong_to_the_transaction_in_which_they_were_sent(cluster: ScriptedCluster) -> None:
    """`send` still waits for metadata when its transaction has ended."""
    late: list[asyncio.Task[Any]] = []

    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        cluster.fate = delayed(MetadataRequest, 50)
        late.append(asyncio.create_task(producer.send("t", b"late", partition=0)))
        await asyncio.sleep(0.01)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"committed", partition=0)
        with pytest.raises(KafkaError) as refused:
            await (await late[0])
        assert refused.value.code is ErrorCode.INVALID_TXN_STATE

    run(cluster, scenario)
    assert cluster.committed() == [b"committed"]


def test_an_abort_wakes_senders_that_wait_for_the_buffer(cluster: ScriptedCluster) -> None:
    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        await producer.send("t", bytes(1000), partition=0)
        waiting = asyncio.create_task(producer.send("t", bytes(1000), partition=0))
        await asyncio.sleep(0.01)
        await producer.abort_transaction()
        await asyncio.wait([await waiting])

    run(cluster, scenario, buffer_memory=1100, linger_ms=1000)


def test_no_record_is_sent_while_a_transaction_ends(cluster: ScriptedCluster) -> None:
    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        await producer.send("t", b"committed", partition=0)
        cluster.fate = delayed(EndTxnRequest, 50)
        ending = asyncio.create_task(producer.commit())
        await asyncio.sleep(0.03)
        assert isinstance(cluster.requests[-1], EndTxnRequest)
        stray = await producer.send("t", b"stray", partition=0)
        with pytest.raises(KafkaError) as refused:
            await stray
        assert refused.value.code is ErrorCode.INVALID_TXN_STATE
        await ending
        async with producer.transaction():
            await producer.send("t", b"next", partition=0)

    run(cluster, scenario)
    assert cluster.committed() == [b"committed", b"next"]


async def commit_one(cluster: ScriptedCluster, producer: TransactionalProducer) -> None:
    cluster.fate = lambda _: Fate()
    async with producer.transaction():
        await producer.send("t", b"committed", partition=0)
    assert cluster.committed() == [b"committed"]


async def offsets_alone(producer: TransactionalProducer, timeout_s: float | None = None) -> None:
    """A transaction of nothing but offsets."""
    async with producer.transaction(), asyncio.timeout(timeout_s):
        await producer.send_offsets("group", {INPUT: 7})


@pytest.mark.parametrize("kind", [AddOffsetsToTxnRequest, TxnOffsetCommitRequest])
def test_offsets_whose_answer_is_lost_are_aborted(cluster: ScriptedCluster, kind: type) -> None:
    if cluster.bumps_epochs and kind is AddOffsetsToTxnRequest:
        return  # not sent

    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        cluster.fate = unheard(kind)
        with pytest.raises(ConnectionLostError):
            await producer.send_offsets("group", {INPUT: 7})
        with pytest.raises(KafkaError) as refused:
            await producer.commit()
        assert refused.value.code is ErrorCode.TRANSACTION_ABORTABLE
        await producer.abort_transaction()
        await commit_one(cluster, producer)

    run(cluster, scenario)
    assert cluster.offsets == {}
    assert cluster.attempts[-1].producer_epoch == 1


def test_offsets_whose_sending_is_cancelled_are_aborted(cluster: ScriptedCluster) -> None:
    async def scenario(producer: TransactionalProducer) -> None:
        cluster.fate = lambda request: Fate(to_client_ms=20 if isinstance(request, TxnOffsetCommitRequest) else 1)
        with pytest.raises(TimeoutError):
            await offsets_alone(producer, timeout_s=0.01)
        await commit_one(cluster, producer)

    run(cluster, scenario)
    assert cluster.offsets == {}


def test_the_end_of_a_transaction_waits_for_offsets(cluster: ScriptedCluster) -> None:
    """Another task still sends them while the transaction aborts."""

    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        cluster.fate = delayed(TxnOffsetCommitRequest, 50)
        sending = asyncio.create_task(producer.send_offsets("group", {INPUT: 7}))
        await asyncio.sleep(0.02)
        await producer.abort_transaction()
        await commit_one(cluster, producer)
        await sending

    run(cluster, scenario)
    assert cluster.offsets == {}


def test_records_that_are_sent_while_a_commit_waits_for_offsets_are_committed(cluster: ScriptedCluster) -> None:
    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        await producer.choose_partition("t", None, 0)
        cluster.fate = delayed(TxnOffsetCommitRequest, 50)
        sending = asyncio.create_task(producer.send_offsets("group", {INPUT: 7}))
        await asyncio.sleep(0.01)
        committing = asyncio.create_task(producer.commit())
        await asyncio.sleep(0.01)
        cluster.fate = delayed(ProduceRequest, 100)
        await producer.send("t", b"one", partition=0)
        await asyncio.gather(sending, committing)
        async with producer.transaction():
            await producer.send("t", b"two", partition=0)

    run(cluster, scenario)
    assert cluster.committed() == [b"one", b"two"]
    assert cluster.offsets == {"group": 7}


@pytest.mark.parametrize("has_committed", [False, True])
def test_a_transaction_that_the_coordinator_does_not_know_is_aborted(
    cluster: ScriptedCluster, has_committed: bool
) -> None:
    async def scenario(producer: TransactionalProducer) -> None:
        if has_committed:
            await commit_one(cluster, producer)
        lost = AddOffsetsToTxnRequest | TxnOffsetCommitRequest
        cluster.fate = lambda request: Fate(is_request_lost=isinstance(request, lost))
        with pytest.raises(ConnectionLostError):
            await offsets_alone(producer)
        cluster.fate = lambda _: Fate()
        async with producer.transaction():
            await producer.send("t", b"next", partition=0)

    run(cluster, scenario)
    assert cluster.committed()[-1] == b"next"
    assert cluster.offsets == {}


def test_partitions_whose_answer_is_lost_are_aborted(cluster: ScriptedCluster) -> None:
    """Otherwise the coordinator keeps the transaction open, and fences its producer after the timeout."""

    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        await producer.choose_partition("t", None, 0)
        cluster.fate = lambda request: Fate(
            is_answer_lost=isinstance(request, AddPartitionsToTxnRequest),
            is_request_lost=isinstance(request, ProduceRequest),
        )
        with pytest.raises(ConnectionLostError):
            await (await producer.send("t", b"aborted", partition=0))
        await producer.abort_transaction()

    run(cluster, scenario, delivery_timeout_ms=2000)
    assert cluster.transactions["orders-1"].state is not TransactionState.ONGOING


def test_a_commit_of_unknown_outcome_is_repeated_and_cannot_be_aborted(cluster: ScriptedCluster) -> None:
    async def scenario(producer: TransactionalProducer) -> None:
        await producer.begin()
        await producer.send("t", b"one", partition=0)
        cluster.fate = unheard(EndTxnRequest)
        with pytest.raises(ConnectionLostError):
            await producer.commit()
        cluster.fate = lambda _: Fate()
        with pytest.raises(KafkaError) as refused:
            await producer.abort_transaction()
        assert refused.value.code is ErrorCode.INVALID_TXN_STATE
        await producer.commit()
        async with producer.transaction():
            await producer.send("t", b"two", partition=0)

    run(cluster, scenario)
    assert cluster.committed() == [b"one", b"two"]


def test_no_offsets_begin_no_transaction(cluster: ScriptedCluster) -> None:
    async def scenario(producer: TransactionalProducer) -> None:
        async with producer.transaction():
            await producer.send_offsets("group", {})

    run(cluster, scenario)
    assert not any(isinstance(request, EndTxnRequest | TxnOffsetCommitRequest) for request in cluster.requests)
