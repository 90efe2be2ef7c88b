import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from fake_broker import HANG_UP, FakeBroker
from scripted_cluster import ScriptedCluster
from virtual_loop import run_virtually

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, ProducerConfig
from sskafka.client.errors import ConfigError, ConnectionLostError, ProducerClosedError, UnknownTopicError
from sskafka.client.producer import ProducerEngine
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import BatchHeader, read_header
from sskafka.records.partitioner import murmur3, partition_for_key
from sskafka.records.record import Record, decode_records
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sskafka.wire.messages.metadata import MetadataRequest
from sskafka.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

FAST = ConnectionConfig(retry_backoff_ms=1, retry_backoff_max_ms=5)
Outcome = int | object
"""An error code, HANG_UP, or STORED_UNHEARD."""
STORED_UNHEARD = object()
"""The batch is stored and the connection ends before the answer."""


class PartitionLog:
    """Accepts produced batches; answers with `outcomes` first, and with success when they are used up.

    As in a broker, a batch with the identity and sequences of a stored one is acknowledged and not stored again."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.attempts: list[BatchHeader] = []
        self.records: dict[TopicPartition, list[Record]] = {}
        self.offsets: dict[tuple[object, ...], int] = {}
        self.acks: set[int] = set()
        self.producer_ids = iter(range(100, 200))

    def answers(self) -> dict[type, Callable[[Any, int], Any]]:
        return {ProduceRequest: self.produce, InitProducerIdRequest: self.init_producer_id}

    def init_producer_id(self, request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=next(self.producer_ids), producer_epoch=0)

    def produce(self, request: ProduceRequest, version: int) -> Any:
        self.acks.add(request.acks)
        outcome = self.outcomes.pop(0) if self.outcomes else 0
        answers = []
        for topic in request.topic_data:
            name = topic.name or topic.topic_id.decode().strip()
            for data in topic.partition_data:
                assert data.records is not None
                header = read_header(data.records)
                self.attempts.append(header)
                log = self.records.setdefault(TopicPartition(name, data.index), [])
                answers.append((topic, PartitionProduceResponse(index=data.index)))
                if outcome in {0, STORED_UNHEARD}:
                    answers[-1][1].base_offset = self.stored(header, log, data.records)
                elif outcome is not HANG_UP:
                    answers[-1][1].error_code = outcome  # type: ignore[assignment]
        is_silent = outcome in {HANG_UP, STORED_UNHEARD}
        if is_silent or request.acks == 0:
            return HANG_UP if is_silent else None
        return ProduceResponse(
            responses=[
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[answer])
                for topic, answer in answers
            ]
        )

    def stored(self, header: BatchHeader, log: list[Record], data: Any) -> int:
        """Store the batch unless it is a duplicate; return its offset."""
        numbered = (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence, id(log))
        if header.producer_id < 0 or numbered not in self.offsets:
            self.offsets[numbered] = len(log)
            log.extend(decode_records(data, header))
        return self.offsets[numbered]

    def values(self, partition: int = 0) -> list[bytes | None]:
        return [record.value for record in self.records[TopicPartition("t", partition)]]


def run(
    log: PartitionLog, scenario: Callable[[ProducerEngine], Any], config: ProducerConfig, partitions: int = 1
) -> Any:
    async def work() -> Any:
        async with (
            FakeBroker(log.answers(), topics={"t": partitions}) as broker,
            Cluster(broker.bootstrap, FAST) as cluster,
            ProducerEngine(cluster, config) as producer,
        ):
            return await scenario(producer)

    return asyncio.run(work())


def test_records_are_batched_and_each_gets_its_offset() -> None:
    log = PartitionLog()

    async def scenario(producer: ProducerEngine) -> list[int]:
        sent = [await producer.send("t", b"%d" % number, timestamp=number) for number in range(50)]
        await producer.flush()
        return [future.result().offset for future in sent]

    assert run(log, scenario, ProducerConfig()) == list(range(50))
    assert log.values() == [b"%d" % number for number in range(50)]
    assert len(log.attempts) < 5
    assert log.acks == {-1}


@pytest.mark.parametrize(
    "outcome",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, HANG_UP],
    ids=["not leader", "not enough replicas", "connection lost"],
)
def test_retries_keep_order_and_sequence(outcome: Outcome) -> None:
    log = PartitionLog(outcome, outcome)

    async def scenario(producer: ProducerEngine) -> list[int]:
        first = await producer.send("t", b"first", partition=0)
        await asyncio.sleep(0)
        second = await producer.send("t", b"second", partition=0)
        return [(await first).offset, (await second).offset]

    assert run(log, scenario, ProducerConfig(linger_ms=0)) == [0, 1]
    assert log.values() == [b"first", b"second"]
    assert [header.base_sequence for header in log.attempts[:3]] == [0, 0, 0]
    assert {header.producer_id for header in log.attempts} == {100}
    assert log.attempts[-1].last_sequence == 1


def test_sequences_count_records_of_each_partition() -> None:
    log = PartitionLog()

    async def scenario(producer: ProducerEngine) -> None:
        for round_ in range(3):
            for partition in (0, 1):
                for _ in range(round_ + 1):
                    await producer.send("t", b"x", partition=partition)
            await producer.flush()

    run(log, scenario, ProducerConfig(), partitions=2)
    assert sorted((header.base_sequence, header.record_count) for header in log.attempts) == [
        (0, 1),
        (0, 1),
        (1, 2),
        (1, 2),
        (3, 3),
        (3, 3),
    ]


def test_the_sequence_of_a_rejected_batch_is_reused() -> None:
    log = PartitionLog(ErrorCode.INVALID_RECORD)

    async def scenario(producer: ProducerEngine) -> None:
        with pytest.raises(KafkaError) as refused:
            await (await producer.send("t", b"bad"))
        assert refused.value.code is ErrorCode.INVALID_RECORD
        await (await producer.send("t", b"good"))

    run(log, scenario, ProducerConfig())
    assert [header.base_sequence for header in log.attempts] == [0, 0]
    assert {header.producer_id for header in log.attempts} == {100}
    assert log.values() == [b"good"]


@pytest.mark.parametrize("outcome", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_lost_sequence_requires_a_new_producer_id(outcome: ErrorCode) -> None:
    log = PartitionLog(0, outcome)

    async def scenario(producer: ProducerEngine) -> None:
        await (await producer.send("t", b"1"))
        with pytest.raises(KafkaError):
            await (await producer.send("t", b"2"))
        await (await producer.send("t", b"3"))

    run(log, scenario, ProducerConfig())
    assert [(header.producer_id, header.base_sequence) for header in log.attempts] == [(100, 0), (100, 1), (101, 0)]


def test_a_batch_with_unknown_outcome_requires_a_new_producer_id() -> None:
    log = PartitionLog(*[HANG_UP] * 100)

    async def scenario(producer: ProducerEngine) -> None:
        with pytest.raises(ConnectionLostError):
            await (await producer.send("t", b"lost?"))
        log.outcomes.clear()
        await (await producer.send("t", b"later"))

    run(log, scenario, ProducerConfig(delivery_timeout_ms=40))
    assert log.attempts[-1].producer_id == 101
    assert log.attempts[-1].base_sequence == 0


@pytest.mark.parametrize("first", [STORED_UNHEARD, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER])
@pytest.mark.parametrize("last", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.MESSAGE_TOO_LARGE])
def test_the_sequence_of_a_batch_that_may_be_stored_is_not_reused(first: Outcome, last: ErrorCode) -> None:
    """Otherwise the leader takes the next batch for a duplicate: it acknowledges the batch and does not store it."""
    log = PartitionLog(first, last)

    async def scenario(producer: ProducerEngine) -> None:
        with pytest.raises(KafkaError) as refused:
            await (await producer.send("t", b"perhaps"))
        assert refused.value.code is last
        await (await producer.send("t", b"acknowledged"))

    run(log, scenario, ProducerConfig())
    assert log.values()[-1] == b"acknowledged"
    assert [(header.producer_id, header.base_sequence) for header in log.attempts] == [(100, 0), (100, 0), (101, 0)]


def test_a_dropped_producer_id_is_replaced_before_a_batch_is_numbered() -> None:
    """The id is dropped while the leader of another partition is looked up."""
    log = PartitionLog(0, ErrorCode.UNKNOWN_SERVER_ERROR)
    is_looking_up = asyncio.Event()
    answer = log.produce

    async def produce(request: ProduceRequest, version: int) -> Any:
        if len(log.attempts) == 1:
            await is_looking_up.wait()
        return answer(request, version)

    log.produce = produce  # type: ignore[method-assign]

    async def scenario(producer: ProducerEngine) -> None:
        await (await producer.send("t", b"first", partition=0))
        dropping = await producer.send("t", b"perhaps", partition=1)
        await asyncio.sleep(0.02)
        leader_of = producer._cluster.leader_of

        async def looked_up(partition: TopicPartition) -> Any:
            is_looking_up.set()
            await asyncio.wait([dropping])
            return await leader_of(partition)

        producer._cluster.leader_of = looked_up  # type: ignore[method-assign]
        await (await producer.send("t", b"second", partition=0))
        assert dropping.exception() is not None

    run(log, scenario, ProducerConfig(linger_ms=0), partitions=2)
    assert [(header.producer_id, header.base_sequence) for header in log.attempts] == [(100, 0), (100, 0), (101, 0)]


def test_an_unknown_server_error_requires_a_new_producer_id() -> None:
    log = PartitionLog(ErrorCode.UNKNOWN_SERVER_ERROR)

    async def scenario(producer: ProducerEngine) -> None:
        with pytest.raises(KafkaError):
            await (await producer.send("t", b"perhaps"))
        await (await producer.send("t", b"later"))

    run(log, scenario, ProducerConfig())
    assert [(header.producer_id, header.base_sequence) for header in log.attempts] == [(100, 0), (101, 0)]


def test_a_refused_retry_keeps_the_producer_id() -> None:
    log = PartitionLog(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_RECORD)

    async def scenario(producer: ProducerEngine) -> None:
        with pytest.raises(KafkaError):
            await (await producer.send("t", b"bad"))
        await (await producer.send("t", b"good"))

    run(log, scenario, ProducerConfig())
    assert [(header.producer_id, header.base_sequence) for header in log.attempts] == [(100, 0)] * 3


def test_a_broker_whose_metadata_is_behind_does_not_fail_a_batch() -> None:
    log = PartitionLog(STORED_UNHEARD)

    async def work() -> int:
        async with FakeBroker(log.answers(), topics={"t": 1}) as broker, Cluster(broker.bootstrap, FAST) as cluster:
            metadata, answers = broker.answers[MetadataRequest], iter(range(5))

            def behind(request: MetadataRequest, version: int) -> Any:
                broker.topics = {"t": 1} if next(answers, 1) in {0, 4} else {}
                return metadata(request, version)

            broker.answers[MetadataRequest] = behind
            async with ProducerEngine(cluster, ProducerConfig()) as producer:
                return (await (await producer.send("t", b"stored"))).offset

    assert asyncio.run(work()) == 0
    assert log.values() == [b"stored"]


def test_a_duplicate_counts_as_delivered() -> None:
    log = PartitionLog(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)

    async def scenario(producer: ProducerEngine) -> None:
        await (await producer.send("t", b"again"))

    run(log, scenario, ProducerConfig())
    assert len(log.attempts) == 1


def test_keys_select_the_partition() -> None:
    log = PartitionLog()
    keys = [b"key%d" % number for number in range(20)]

    async def scenario(producer: ProducerEngine) -> list[int]:
        sent = [await producer.send("t", b"x", key=key) for key in keys]
        await producer.flush()
        return [future.result().partition.partition for future in sent]

    assert run(log, scenario, ProducerConfig(), partitions=5) == [partition_for_key(key, 5) for key in keys]


def test_the_hash_of_keys_is_a_property() -> None:
    async def scenario(producer: ProducerEngine) -> int:
        return (await (await producer.send("t", b"x", key=b"test"))).partition.partition

    config = ProducerConfig(partitioner_hash="murmur3")
    assert run(PartitionLog(), scenario, config, partitions=5) == partition_for_key(b"test", 5, murmur3)
    with pytest.raises(ConfigError, match="'md5': expected one of murmur2, murmur3"):
        run(PartitionLog(), scenario, ProducerConfig(partitioner_hash="md5"))


def test_retries_can_be_limited() -> None:
    async def scenario(producer: ProducerEngine) -> None:
        await (await producer.send("t", b"x"))

    config = ProducerConfig(retries=2, linger_ms=0)
    log = PartitionLog(*[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2)
    run(log, scenario, config)
    assert len(log.attempts) == 3
    with pytest.raises(KafkaError) as caught:
        run(PartitionLog(*[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3), scenario, config)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_records_without_a_key_use_sticky_partitions() -> None:
    log = PartitionLog()

    async def scenario(producer: ProducerEngine) -> list[set[int]]:
        rounds = []
        for _ in range(20):
            sent = [await producer.send("t", b"x") for _ in range(5)]
            await producer.flush()
            rounds.append({future.result().partition.partition for future in sent})
        return rounds

    rounds = run(log, scenario, ProducerConfig(), partitions=4)
    assert all(len(partitions) == 1 for partitions in rounds)
    assert len(set.union(*rounds)) > 1


def test_batches_stay_below_their_size() -> None:
    log = PartitionLog()

    async def scenario(producer: ProducerEngine) -> None:
        for _ in range(30):
            await producer.send("t", bytes(300), partition=0)

    run(log, scenario, ProducerConfig(batch_size=1000))
    assert len(log.values()) == 30
    assert max(header.size_bytes for header in log.attempts) <= 1000


def test_requests_stay_below_their_size() -> None:
    log = PartitionLog()
    sizes = []
    answer = log.produce

    def produce(request: ProduceRequest, version: int) -> Any:
        sizes.append(sum(len(data.records or b"") for topic in request.topic_data for data in topic.partition_data))
        return answer(request, version)

    log.produce = produce  # type: ignore[method-assign]

    async def scenario(producer: ProducerEngine) -> None:
        for partition in range(10):
            await producer.send("t", bytes(300), partition=partition)

    run(log, scenario, ProducerConfig(max_request_size=1000), partitions=10)
    assert max(sizes) <= 1000
    assert len(log.records) == 10


def test_senders_wait_while_the_buffer_is_full() -> None:
    log = PartitionLog()
    high: list[int] = []

    async def scenario(producer: ProducerEngine) -> None:
        for _ in range(100):
            await producer.send("t", bytes(1000), partition=0)
            high.append(producer._accumulator.waiting_bytes)

    run(log, scenario, ProducerConfig(buffer_memory=5000, batch_size=2500))
    assert max(high) <= 5000
    assert len(log.values()) == 100


def test_acks_0_does_not_wait() -> None:
    log = PartitionLog()

    async def scenario(producer: ProducerEngine) -> int:
        return (await (await producer.send("t", b"x"))).offset  # type: ignore[no-any-return]

    assert run(log, scenario, ProducerConfig(acks="0")) == -1
    assert log.acks == {0}


def test_too_large_records_and_unknown_partitions_fail() -> None:
    async def scenario(producer: ProducerEngine) -> None:
        with pytest.raises(KafkaError, match=r"larger than max\.request\.size=1000"):
            await producer.send("t", bytes(2000))
        with pytest.raises(UnknownTopicError):
            await producer.send("missing", b"x")

    run(PartitionLog(), scenario, ProducerConfig(max_request_size=1000, allow_auto_create_topics=False))


def test_an_exception_in_the_block_cancels_undelivered_records() -> None:
    log = PartitionLog(*[HANG_UP] * 1000)
    sent = []

    async def scenario(producer: ProducerEngine) -> None:
        sent.append(await producer.send("t", b"never"))
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        run(log, scenario, ProducerConfig())
    assert sent[0].cancelled()


def test_a_failure_of_the_sender_task_is_raised() -> None:
    async def scenario(producer: ProducerEngine) -> None:
        async def broken() -> dict[int, list[Any]]:
            raise ZeroDivisionError

        producer._take_ready = broken  # type: ignore[method-assign]
        await producer.send("t", b"x")
        await producer.flush()

    with pytest.raises(ZeroDivisionError):
        run(PartitionLog(), scenario, ProducerConfig())


def test_the_records_of_a_sender_that_has_died_fail() -> None:
    async def scenario(producer: ProducerEngine) -> None:
        async def broken() -> dict[int, list[Any]]:
            raise ZeroDivisionError

        producer._take_ready = broken  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            await (await producer.send("t", b"x"))
        with pytest.raises(ZeroDivisionError):
            await producer.send("t", b"x")
        await producer.abort()

    run(PartitionLog(), scenario, ProducerConfig())


def test_a_producer_that_closes_refuses_records_that_wait_for_metadata() -> None:
    cluster = ScriptedCluster()

    async def work() -> None:
        async with cluster.client() as client:
            producer = ProducerEngine(client)
            producer.start()
            sending = asyncio.create_task(producer.send("t", b"late"))
            await asyncio.sleep(0.001)
            await producer.close()
            with pytest.raises(ProducerClosedError):
                await sending

    run_virtually(work())


def test_a_producer_that_stops_refuses_records_that_wait_for_the_buffer() -> None:
    cluster = ScriptedCluster()

    async def work() -> None:
        async with cluster.client() as client:
            producer = ProducerEngine(client, ProducerConfig(buffer_memory=1100, linger_ms=1000))
            producer.start()
            await producer.send("t", bytes(1000))
            waiting = asyncio.gather(producer.send("t", bytes(1000)), producer.flush(), return_exceptions=True)
            await asyncio.sleep(0)
            await producer.abort()
            assert [type(outcome) for outcome in await waiting] == [ProducerClosedError] * 2

    run_virtually(work())


def test_a_topic_that_metadata_has_lost_in_the_meantime_is_looked_up_again() -> None:
    cluster = ScriptedCluster()

    async def work() -> None:
        async with cluster.client() as client, ProducerEngine(client) as producer:
            connection_to, forgetful = client.connection_to, iter([True])

            async def behind(node_id: int) -> Any:
                connection = await connection_to(node_id)
                if next(forgetful, False):
                    client.adopt(dataclasses.replace(client.view, topics={}))
                return connection

            client.connection_to = behind  # type: ignore[method-assign]
            await (await producer.send("t", b"x"))

    run_virtually(work())
    assert cluster.values() == [b"x"]
