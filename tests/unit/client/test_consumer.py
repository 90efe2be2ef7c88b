import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_broker import HANG_UP, FakeBroker

from sskafka.client import fetcher
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, ConsumerConfig
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.errors import BrokerUnavailableError, LogTruncatedError, NoOffsetForPartitionError
from sskafka.client.fetched import CompletedFetch
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import CorruptBatchError
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, EndTransactionMarker, control_key
from sskafka.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from sskafka.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sskafka.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

FAST = ConnectionConfig(retry_backoff_ms=1, retry_backoff_max_ms=5)
T0 = TopicPartition("t", 0)


def batch(base_offset: int, *values: bytes, **options: Any) -> bytes:
    return bytes(build_batch([NewRecord(None, value) for value in values], base_offset=base_offset, **options))


def marker(base_offset: int, producer_id: int, kind: ControlType) -> bytes:
    end = EndTransactionMarker(kind, 0)
    record = NewRecord(control_key(kind), end.value())
    options = {"control": True, "transactional": True, "producer_id": producer_id}
    return bytes(build_batch([record], base_offset=base_offset, **options))


def values(records: bytes, next_offset: int = 0, **options: Any) -> tuple[list[bytes | None], int]:
    fetched = CompletedFetch(T0, records, next_offset, **options)
    return [record.value for record in fetched], fetched.next_offset


def test_a_fetch_into_the_middle_of_a_batch_starts_at_its_offset() -> None:
    assert values(batch(10, b"a", b"b", b"c") + batch(13, b"d"), next_offset=12) == ([b"c", b"d"], 14)


def test_an_incomplete_batch_is_left_for_the_next_fetch() -> None:
    whole, second = batch(0, b"a", b"b"), batch(2, b"c")
    for cut in (1, 12, 60, 61, len(second) - 1):
        assert values(whole + second[:cut]) == ([b"a", b"b"], 2)


def test_control_batches_are_filtered_but_advance_the_position() -> None:
    assert values(batch(0, b"a") + marker(1, 7, ControlType.COMMIT)) == ([b"a"], 2)


def test_aborted_records_are_filtered_from_first_offset_to_marker() -> None:
    tx: dict[str, Any] = {"transactional": True, "producer_id": 7}
    other: dict[str, Any] = {"transactional": True, "producer_id": 8}
    records = (
        batch(0, b"committed", **tx)
        + marker(1, 7, ControlType.COMMIT)
        + batch(2, b"aborted", **tx)
        + batch(3, b"plain")
        + batch(4, b"other", **other)
        + marker(5, 7, ControlType.ABORT)
        + batch(6, b"committed later", **tx)
    )
    seen, end = values(records, aborted=[(2, 7)])
    assert seen == [b"committed", b"plain", b"other", b"committed later"]
    assert end == 7
    assert values(records)[0] == [b"committed", b"aborted", b"plain", b"other", b"committed later"]


def test_a_batch_with_a_wrong_checksum_is_rejected() -> None:
    damaged = bytearray(batch(0, b"good") + batch(1, b"value"))
    damaged[-2] ^= 1
    with pytest.raises(CorruptBatchError, match="t-0: the batch at offset 1 has a wrong checksum"):
        values(bytes(damaged))
    assert values(bytes(damaged), check_crcs=False)[1] == 2


class Leader:
    """A partition leader: serves batches by base offset; queued responses are sent first."""

    def __init__(self, *first: PartitionData | object, records: bytes = b"", start: int = 0, end: int = 0) -> None:
        self.first = list(first)
        self.records = records
        self.start, self.end = start, end
        self.asked: list[Any] = []

    def answers(self) -> dict[type, Callable[[Any, int], Any]]:
        return {FetchRequest: self.fetch, ListOffsetsRequest: self.list_offsets}

    async def fetch(self, request: FetchRequest, version: int) -> Any:
        asked = request.topics[0].partitions[0]
        self.asked.append(asked)
        if self.first:
            data = self.first.pop(0)
        elif not self.start <= asked.fetch_offset <= self.end:
            data = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        elif asked.fetch_offset == self.end:
            await asyncio.sleep(request.max_wait_ms / 1000)
            data = PartitionData(high_watermark=self.end)
        else:
            data = PartitionData(high_watermark=self.end, records=self.records)
        if data is HANG_UP:
            return HANG_UP
        assert isinstance(data, PartitionData)
        topic_id = request.topics[0].topic_id
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic_id, partitions=[data])])

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        asked = request.topics[0].partitions[0]
        offset = {-2: self.start, -1: self.end}.get(asked.timestamp, -1)
        partition = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])


def run(
    leader: Leader, scenario: Callable[[ConsumerEngine], Awaitable[Any]], config: ConsumerConfig | None = None
) -> Any:
    async def work() -> Any:
        async with (
            FakeBroker(leader.answers(), topics={"t": 1}) as broker,
            Cluster(broker.bootstrap, FAST) as cluster,
            ConsumerEngine(cluster, config) as consumer,
        ):
            return await scenario(consumer)

    return asyncio.run(work())


async def read_from_0(consumer: ConsumerEngine) -> list[bytes | None]:
    consumer.assign({T0: 0})
    return [record.value for record in await consumer.poll(2000)]


def test_polling_advances_the_position() -> None:
    leader = Leader(records=batch(0, b"a", b"b", leader_epoch=5), end=2)

    async def scenario(consumer: ConsumerEngine) -> None:
        assert await read_from_0(consumer) == [b"a", b"b"]
        assert consumer.position(T0) == 2
        assert consumer.high_watermark(T0) == 2
        assert await consumer.poll(20) == []
        assert (leader.asked[0].current_leader_epoch, leader.asked[0].last_fetched_epoch) == (5, -1)
        assert (leader.asked[1].fetch_offset, leader.asked[1].last_fetched_epoch) == (2, 5)

    run(leader, scenario)


@pytest.mark.parametrize(
    "trouble", [PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER), HANG_UP], ids=["not leader", "lost"]
)
def test_retriable_failures_are_retried(trouble: object) -> None:
    leader = Leader(trouble, trouble, records=batch(0, b"a"), end=1)
    assert run(leader, read_from_0) == [b"a"]


def test_final_failures_are_raised() -> None:
    leader = Leader(PartitionData(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="fetch of t-0"):
        run(leader, read_from_0)


def test_an_offset_out_of_range_is_raised_or_reset() -> None:
    def leader() -> Leader:
        return Leader(records=batch(5, b"first"), start=5, end=6)

    with pytest.raises(NoOffsetForPartitionError, match="offset 0 of t-0 is out of range"):
        run(leader(), read_from_0)
    assert run(leader(), read_from_0, ConsumerConfig(auto_offset_reset="earliest")) == [b"first"]

    async def at_the_end(consumer: ConsumerEngine) -> int:
        consumer.assign({T0: 0})
        assert await consumer.poll(50) == []
        return consumer.position(T0)

    config = ConsumerConfig(auto_offset_reset="latest", fetch_max_wait_ms=10)
    assert run(leader(), at_the_end, config) == 6


def test_log_truncation_is_detected() -> None:
    def leader() -> Leader:
        diverging = PartitionData(diverging_epoch=EpochEndOffset(epoch=4, end_offset=1))
        return Leader(diverging, records=batch(0, b"a", b"b"), end=2)

    async def scenario(consumer: ConsumerEngine) -> list[bytes | None]:
        consumer.assign({T0: 2})
        return [record.value for record in await consumer.poll(1000)]

    with pytest.raises(LogTruncatedError, match="t-0 was truncated to 1, below 2"):
        run(leader(), scenario)
    assert run(leader(), scenario, ConsumerConfig(auto_offset_reset="earliest")) == [b"b"]


def test_a_cancelled_poll_loses_no_records() -> None:
    """It may be cancelled while it starts the next fetches, with records in hand."""
    leader = Leader(records=batch(0, b"a", b"b"), end=2)
    asked = asyncio.Event()

    async def work() -> list[bytes | None]:
        always_old = ConnectionConfig(retry_backoff_ms=1, metadata_max_age_ms=-1)
        async with (
            FakeBroker(leader.answers(), topics={"t": 1}) as broker,
            Cluster(broker.bootstrap, always_old) as cluster,
            ConsumerEngine(cluster) as consumer,
        ):

            def metadata(request: MetadataRequest, version: int) -> MetadataResponse | None:
                if leader.asked and not asked.is_set():
                    asked.set()
                    return None
                return broker.metadata(request, version)

            broker.answers[MetadataRequest] = metadata
            consumer.assign({T0: 0})
            poll = asyncio.create_task(consumer.poll(5000))
            await asked.wait()
            poll.cancel()
            await asyncio.wait([poll])
            assert poll.cancelled()
            assert consumer.position(T0) == 0
            broker.hang_up()
            return [record.value for record in await consumer.poll(5000)]

    assert asyncio.run(work()) == [b"a", b"b"]


def test_responses_for_an_old_position_are_dropped() -> None:
    leader = Leader(records=batch(0, b"a", b"b", b"c"), end=3)

    async def scenario(consumer: ConsumerEngine) -> list[bytes | None]:
        consumer.assign({T0: 0})
        await consumer._start_fetches()
        consumer.seek(T0, 2)
        return [record.value for record in await consumer.poll(1000)]

    assert run(leader, scenario) == [b"c"]


def test_seeking_to_a_time_after_the_last_record_goes_to_the_end() -> None:
    async def scenario(consumer: ConsumerEngine) -> list[int]:
        consumer.assign({T0: 1})
        positions = []
        await consumer.seek_to_timestamp(12345)
        positions.append(consumer.position(T0))
        await consumer.seek_to_beginning()
        positions.append(consumer.position(T0))
        await consumer.seek_to_end([T0])
        return [*positions, consumer.position(T0)]

    assert run(Leader(start=3, end=9), scenario) == [9, 3, 9]


def test_records_are_returned_before_the_failure_of_another_partition() -> None:
    """Partition 0 has records and partition 1 a permanent error: neither may hide the other."""
    t1 = TopicPartition("t", 1)

    async def fetch(request: FetchRequest, version: int) -> FetchResponse:
        good = PartitionData(high_watermark=1, records=batch(0, b"a"))
        bad = PartitionData(partition_index=1, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        asked = {partition.partition: partition.fetch_offset for partition in request.topics[0].partitions}
        answers = [bad] if asked[0] else [good, bad]
        return FetchResponse(
            responses=[FetchableTopicResponse(topic_id=request.topics[0].topic_id, partitions=answers)]
        )

    async def work() -> None:
        async with (
            FakeBroker({FetchRequest: fetch}, topics={"t": 2}) as broker,
            Cluster(broker.bootstrap, FAST) as cluster,
            ConsumerEngine(cluster) as consumer,
        ):
            consumer.assign({T0: 0, t1: 0})
            assert [record.value for record in await consumer.poll()] == [b"a"]
            with pytest.raises(KafkaError, match="fetch of t-1"):
                await consumer.poll()

    asyncio.run(work())


def test_the_preferred_read_replica_is_used_until_it_lacks_the_offset() -> None:
    leader = Leader(PartitionData(preferred_read_replica=2), records=batch(1, b"b"), end=2)
    follower = Leader(records=batch(0, b"a"), end=1)
    follower.first = [PartitionData(records=batch(0, b"a")), PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]

    async def scenario() -> None:
        async with (
            FakeBroker(follower.answers()) as near,
            FakeBroker(leader.answers(), topics={"t": 1}) as far,
            Cluster(far.bootstrap, FAST) as cluster,
            ConsumerEngine(cluster, ConsumerConfig(client_rack="here")) as consumer,
        ):
            far.answers[MetadataRequest] = lambda request, version: with_broker(far.metadata(request, version), near)
            assert await read_from_0(consumer) == [b"a"]
            assert [record.value for record in await consumer.poll(2000)] == [b"b"]
            assert [asked.fetch_offset for asked in follower.asked] == [0, 1]
            assert [asked.fetch_offset for asked in leader.asked] == [0, 1]

    asyncio.run(scenario())


def with_broker(response: MetadataResponse, broker: FakeBroker) -> MetadataResponse:
    host, port = broker.address
    response.brokers.append(MetadataResponseBroker(node_id=2, host=host, port=port))
    return response


def both_in_sync(response: MetadataResponse, other: FakeBroker) -> MetadataResponse:
    with_broker(response, other)
    for topic in response.topics:
        topic.partitions[0].isr_nodes = [1, 2]
    return response


def test_max_records_limits_a_poll_and_fetching_continues_when_used_up() -> None:
    leader = Leader(records=batch(0, *[b"%d" % number for number in range(5)]), end=5)

    async def scenario(consumer: ConsumerEngine) -> list[list[bytes | None]]:
        consumer.assign({T0: 0})
        portions = []
        for expected_position in (2, 4, 5):
            portions.append([record.value for record in await consumer.poll(1000, 2)])
            assert consumer.position(T0) == expected_position
        assert [asked.fetch_offset for asked in leader.asked] == [0]
        return portions

    assert run(leader, scenario) == [[b"0", b"1"], [b"2", b"3"], [b"4"]]


def test_buffered_records_are_dropped_after_a_seek() -> None:
    leader = Leader(records=batch(0, b"a", b"b", b"c"), end=3)

    async def scenario(consumer: ConsumerEngine) -> list[bytes | None]:
        consumer.assign({T0: 0})
        await consumer.poll(1000, 1)
        consumer.seek(T0, 2)
        return [record.value for record in await consumer.poll(1000)]

    assert run(leader, scenario) == [b"c"]


def test_a_partition_without_a_leader_does_not_block_the_others() -> None:
    async def fetch(request: FetchRequest, version: int) -> FetchResponse:
        asked = [partition for partition in request.topics[0].partitions if partition.fetch_offset == 0]
        if not asked:
            await asyncio.sleep(request.max_wait_ms / 1000)
        answers = [PartitionData(item.partition, high_watermark=1, records=batch(0, b"a")) for item in asked]
        topic_id = request.topics[0].topic_id
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic_id, partitions=answers)])

    async def work() -> None:
        async with (
            FakeBroker({FetchRequest: fetch}, topics={"t": 2}) as broker,
            Cluster(broker.bootstrap, FAST) as cluster,
            ConsumerEngine(cluster, ConsumerConfig(fetch_max_wait_ms=10)) as consumer,
        ):

            def leaderless(request: MetadataRequest, version: int) -> MetadataResponse:
                response = broker.metadata(request, version)
                for topic in response.topics:
                    topic.partitions[1].leader_id = -1
                return response

            broker.answers[MetadataRequest] = leaderless
            consumer.assign({T0: 0, TopicPartition("t", 1): 0})
            assert [record.partition for record in await consumer.poll()] == [0]
            assert await consumer.poll(30) == []
            broker.answers[MetadataRequest] = broker.metadata
            assert [record.partition for record in await consumer.poll(5000)] == [1]

    asyncio.run(work())


def test_unavailable_brokers_are_retried_until_the_timeout() -> None:
    leader = Leader(records=batch(0, b"a"), end=1)
    config = ConnectionConfig(retry_backoff_ms=1, retry_backoff_max_ms=5, default_api_timeout_ms=200)

    async def work() -> None:
        async with Cluster("127.0.0.1:1", config) as cluster, ConsumerEngine(cluster) as consumer:
            async with FakeBroker(leader.answers(), topics={"t": 1}) as broker, Cluster(broker.bootstrap) as other:
                cluster.adopt(await other.refresh(["t"]))
            consumer.assign({T0: 0})
            assert await consumer.poll(50) == [], "a poll keeps to its time"
            with pytest.raises(BrokerUnavailableError):
                await consumer.poll(5000)

    asyncio.run(work())


def test_the_leader_is_believed_that_it_lacks_the_offset() -> None:
    leader = Leader(records=batch(5, b"first"), start=5, end=6)

    async def scenario(consumer: ConsumerEngine) -> list[bytes | None]:
        consumer.add(T0, 0, any_replica=True)
        return [record.value for record in await consumer.poll(2000)]

    assert run(leader, scenario, ConsumerConfig(auto_offset_reset="earliest")) == [b"first"]
    assert [asked.fetch_offset for asked in leader.asked] == [0, 5]


def test_only_the_leader_is_believed_that_the_log_was_truncated() -> None:
    """A replica that has left the in-sync set may lag, and the position is after its last record."""
    lagging = Leader(PartitionData(diverging_epoch=EpochEndOffset(epoch=5, end_offset=90)))
    leader = Leader(records=batch(100, b"next"), end=101)

    class Draws:
        def random(self) -> float:
            return 0.0 if lagging.asked else 0.99

    async def scenario() -> None:
        async with (
            FakeBroker(lagging.answers()) as far,
            FakeBroker(leader.answers(), topics={"t": 1}) as near,
            Cluster(near.bootstrap, FAST) as cluster,
            ConsumerEngine(cluster, randomness=Draws()) as consumer,
        ):
            near.answers[MetadataRequest] = lambda request, version: both_in_sync(near.metadata(request, version), far)
            consumer.add(T0, 100, any_replica=True, last_epoch=5)
            assert [record.value for record in await consumer.poll(2000)] == [b"next"]
            assert [asked.fetch_offset for asked in lagging.asked] == [100]

    asyncio.run(scenario())


def test_another_replica_is_used_if_one_does_not_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "REPLICA_TIMEOUT_MS", 50)
    leader = Leader(records=batch(0, b"a"), end=1)
    asked: list[FetchRequest] = []

    class Draws:
        def random(self) -> float:
            return 0.99 if not asked else 0.0

    async def scenario() -> None:
        async with (
            FakeBroker({FetchRequest: lambda request, version: asked.append(request)}) as silent,
            FakeBroker(leader.answers(), topics={"t": 1}) as far,
            Cluster(far.bootstrap, FAST) as cluster,
            ConsumerEngine(cluster, ConsumerConfig(fetch_max_wait_ms=10), randomness=Draws()) as consumer,
        ):
            far.answers[MetadataRequest] = lambda request, version: both_in_sync(far.metadata(request, version), silent)
            consumer.add(T0, 0, any_replica=True)
            assert [record.value for record in await consumer.poll(5000)] == [b"a"]
            assert len(asked) == 1
            assert consumer.source(T0) == 1

    asyncio.run(scenario())
