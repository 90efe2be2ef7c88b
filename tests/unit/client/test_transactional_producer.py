"""The transactional producer against a scripted cluster, in both versions of the protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_cluster import Fate, ScriptedCluster
from virtual_loop import run_virtually

from sskafka.client.config import ProducerConfig
from sskafka.client.transactional_producer import TransactionalProducer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from sskafka.wire.messages.end_txn import EndTxnRequest
from sskafka.wire.messages.metadata import MetadataRequest
from sskafka.wire.messages.produce import ProduceRequest

Scenario = Callable[[TransactionalProducer], Awaitable[None]]


@pytest.fixture(params=[False, True], ids=["first", "second"])
def cluster(request: pytest.FixtureRequest) -> ScriptedCluster:
    return ScriptedCluster(partitions=2, bumps_epochs=request.param)


def run(cluster: ScriptedCluster, scenario: Scenario, **properties: Any) -> None:
    async def work() -> None:
        async with (
            asyncio.timeout(600),
            cluster.client() as client,
            TransactionalProducer(client, "orders-1", ProducerConfig(**{"linger_ms": 0, **properties})) as producer,
        ):
            await scenario(producer)

    run_virtually(work())


def delayed(kind: type, ms: float) -> Callable[[Any], Fate]:
    return lambda request: Fate(to_broker_ms=ms) if isinstance(request, kind) else Fate()


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
