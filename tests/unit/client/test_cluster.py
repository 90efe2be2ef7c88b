import asyncio

import pytest
from fake_broker import FakeBroker

from sskafka.client.backoff import Backoff
from sskafka.client.cluster import Cluster, parse_bootstrap
from sskafka.client.config import ConnectionConfig, ConsumerConfig, ProducerConfig, configured, unknown_properties
from sskafka.client.connection import Address
from sskafka.client.errors import (
    BrokerUnavailableError,
    ConfigError,
    ConnectionLostError,
    ConnectionRefusedByBrokerError,
    UnknownTopicError,
)
from sskafka.client.metadata import MetadataSnapshot, PartitionView, TopicView, merged
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.runtime.clock import SystemClock
from sskafka.wire.messages.metadata import MetadataRequest


class ManualClock:
    def __init__(self) -> None:
        self.ms = 0.0

    def now_ms(self) -> int:
        return int(self.ms)

    def monotonic_ms(self) -> float:
        return self.ms


def test_bootstrap_lists() -> None:
    assert parse_bootstrap("a:1, b ,PLAINTEXT://c:3,[::1]:4,[fe80::2]") == (
        Address("a", 1),
        Address("b", 9092),
        Address("c", 3),
        Address("::1", 4),
        Address("fe80::2", 9092),
    )
    assert str(Address("::1", 4)) == "[::1]:4"
    for bad in ("", " , ", "host:port", "host:0", ":9092", "host:99999"):
        with pytest.raises(ConfigError):
            parse_bootstrap(bad)


def test_metadata_is_cached_until_it_expires_or_is_marked_stale() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        async with (
            FakeBroker(topics={"orders": 2}) as broker,
            Cluster(broker.bootstrap, ConnectionConfig(metadata_max_age_ms=1000), clock=clock) as cluster,
        ):
            for _ in range(3):
                assert len((await cluster.topic("orders")).partitions) == 2
            assert len(broker.seen(MetadataRequest)) == 1
            broker.topics["orders"] = 3
            clock.ms += 1001
            assert len((await cluster.topic("orders")).partitions) == 3
            cluster.forget("orders")
            await cluster.topic("orders")
            assert len(broker.seen(MetadataRequest)) == 3

    asyncio.run(scenario())


def test_new_topics_and_partitions_are_found_within_the_grace_period() -> None:
    async def scenario() -> None:
        config = ConnectionConfig(retry_backoff_ms=1)
        async with FakeBroker(topics={"orders": 2}) as broker, Cluster(broker.bootstrap, config) as cluster:
            attempts = 0

            async def leader_of_the_third() -> int:
                nonlocal attempts
                attempts += 1
                if attempts == 3:
                    broker.topics["orders"] = 3
                return (await cluster.leader_of(TopicPartition("orders", 2))).leader

            assert await cluster.retrying(leader_of_the_third, topics=["orders"]) == 1
            broker.topics.pop("orders")
            cluster.forget("orders")
            later = asyncio.get_running_loop().call_later(0.02, broker.topics.update, {"orders": 1})
            assert len((await cluster.retrying(lambda: cluster.topic("orders"), topics=["orders"])).partitions) == 1
            later.cancel()

    asyncio.run(scenario())


def test_a_partition_that_was_added_since_the_topic_was_looked_up_is_found() -> None:
    async def scenario() -> None:
        async with FakeBroker(topics={"orders": 2}) as broker, Cluster(broker.bootstrap) as cluster:
            await cluster.topic("orders")
            broker.topics["orders"] = 3
            assert (await cluster.leader_of(TopicPartition("orders", 2))).leader == 1

    asyncio.run(scenario())


def test_missing_topics_and_partitions_fail_after_the_grace_period() -> None:
    async def scenario() -> None:
        async with FakeBroker(topics={"orders": 2}) as broker, Cluster(broker.bootstrap) as cluster:
            with pytest.raises(UnknownTopicError, match="no topic 'other'"):
                await cluster.retrying(lambda: cluster.topic("other"))
            with pytest.raises(UnknownTopicError, match="no partition 2: it has 2"):
                await cluster.leader_of(TopicPartition("orders", 2))
            assert (await cluster.leader_of(TopicPartition("orders", 1))).leader_epoch == 5

    asyncio.run(scenario())


def test_another_broker_is_used_if_one_hangs() -> None:
    async def scenario() -> None:
        config = ConnectionConfig(request_timeout_ms=30, retry_backoff_ms=1)
        async with (
            FakeBroker({MetadataRequest: lambda request, version: None}) as hung,
            FakeBroker(topics={"orders": 1}) as broker,
            Cluster(f"{hung.bootstrap},{broker.bootstrap}", config) as cluster,
        ):
            deadline_ms = cluster.deadline_ms(2000)
            assert (await cluster.retrying(cluster.refresh, deadline_ms=deadline_ms)).controller_id == 1
            assert len(hung.seen(MetadataRequest)) == 1

    asyncio.run(scenario())


def test_the_next_bootstrap_server_is_tried() -> None:
    async def scenario() -> None:
        async with FakeBroker() as gone:
            dead = gone.bootstrap
        async with FakeBroker(topics={"orders": 1}) as broker, Cluster(f"{dead},{broker.bootstrap}") as cluster:
            assert (await cluster.refresh()).controller_id == 1
        with pytest.raises(BrokerUnavailableError, match=f"{dead}.*; .*{broker.bootstrap}"):
            async with Cluster(f"{dead},{broker.bootstrap}") as cluster:
                await cluster.refresh()

    asyncio.run(scenario())


def test_a_lost_connection_is_replaced() -> None:
    async def scenario() -> None:
        async with FakeBroker(topics={"orders": 1}) as broker, Cluster(broker.bootstrap) as cluster:
            await cluster.refresh()
            first = await cluster.connection_to(1)
            assert await cluster.connection_to(1) is first
            await first.close()
            second = await cluster.connection_to(1)
            assert second is not first
            assert second.is_open
            with pytest.raises(BrokerUnavailableError, match="no broker 9"):
                await cluster.connection_to(9)

    asyncio.run(scenario())


class TickingClock(SystemClock):
    """A clock that advances by a millisecond on every read."""

    def __init__(self) -> None:
        self._elapsed_ms = 0.0

    def monotonic_ms(self) -> float:
        self._elapsed_ms += 1
        return self._elapsed_ms


def test_retrying_stops_at_the_deadline_and_at_final_errors() -> None:
    async def scenario() -> None:
        attempts = []
        config = ConnectionConfig(retry_backoff_ms=1, retry_backoff_max_ms=1)

        async def fail(code: ErrorCode) -> None:
            attempts.append(code)
            raise KafkaError(code)

        async with FakeBroker() as broker, Cluster(broker.bootstrap, config, clock=TickingClock()) as cluster:
            with pytest.raises(KafkaError):
                await cluster.retrying(
                    lambda: fail(ErrorCode.LEADER_NOT_AVAILABLE), deadline_ms=cluster.deadline_ms(20)
                )
            assert len(attempts) > 3, "until 20 ms have passed"
            attempts.clear()
            with pytest.raises(KafkaError):
                await cluster.retrying(lambda: fail(ErrorCode.INVALID_CONFIG))
            assert len(attempts) == 1

    asyncio.run(scenario())


def view(*partitions: PartitionView, topic_id: bytes = b"i" * 16, error: int = 0) -> MetadataSnapshot:
    by_number = {partition.partition: partition for partition in partitions}
    return MetadataSnapshot(topics={"t": TopicView("t", topic_id, False, error, by_number)})


def partition(leader: int, epoch: int) -> PartitionView:
    return PartitionView(0, leader, epoch, (1, 2), (1, 2), (), 0)


def test_older_leader_epochs_do_not_replace_newer_ones() -> None:
    known = view(partition(leader=1, epoch=7))
    at = TopicPartition("t", 0)
    for told, expected in [
        (view(partition(2, 6)), 1),
        (view(partition(2, 8)), 2),
        (view(partition(2, 0), topic_id=b"j" * 16), 2),
    ]:
        found = merged(known, told, {"t"}).partition(at)
        assert found is not None
        assert found.leader == expected


def test_topics_not_requested_are_kept_and_deleted_ones_removed() -> None:
    known = view(partition(1, 1))
    assert "t" in merged(known, MetadataSnapshot(), {"other"}).topics
    assert "t" not in merged(known, MetadataSnapshot(), None).topics
    assert "t" not in merged(known, view(error=3), {"t"}).topics


@pytest.mark.parametrize(
    ("error", "is_quick"),
    [
        (ConnectionRefusedByBrokerError("refused"), True),
        (ConnectionLostError("lost"), True),
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), True),
        (KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), True),
        (BrokerUnavailableError("no answer"), False),
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), False),
    ],
)
def test_the_first_retries_after_a_failover_are_fast(error: Exception, is_quick: bool) -> None:
    cluster = Cluster("localhost:1", randomness=_Middle())
    delays = [cluster.retry_delay_ms(failures, error) for failures in range(10)]
    assert delays[0] == 100
    assert delays[4] == (200 if is_quick else 1000)
    assert delays[8:] == [1000, 1000], "who is away for longer is not asked for all the time"
    patient = Cluster("localhost:1", ConnectionConfig(retry_backoff_ms=500), randomness=_Middle())
    assert patient.retry_delay_ms(0, error) == 500, "retry.backoff.ms is the least"


class _Middle:
    """Randomness without jitter."""

    def random(self) -> float:
        return 0.5


def test_backoff_grows_to_its_limit_with_jitter() -> None:
    class Fixed:
        def __init__(self, value: float) -> None:
            self.value = value

        def random(self) -> float:
            return self.value

    middle = Backoff(100, 1000, Fixed(0.5))
    assert [middle.delay_ms(attempt) for attempt in (0, 1, 2, 3, 4, 500)] == [100, 200, 400, 800, 1000, 1000]
    assert Backoff(100, 1000, Fixed(0)).delay_ms(0) == pytest.approx(80)
    assert Backoff(100, 1000, Fixed(1)).delay_ms(0) == pytest.approx(120)


def test_properties() -> None:
    properties = {"linger.ms": "7", "enable.idempotence": "False", "client.id": "me", "acks": "1"}
    assert configured(ProducerConfig, properties) == ProducerConfig(linger_ms=7, enable_idempotence=False, acks="1")
    assert configured(ConnectionConfig, properties).client_id == "me"
    assert unknown_properties([*properties, "linger", "zzz"]) == {"linger": "linger.ms", "zzz": None}
    for cls, bad in [(ProducerConfig, {"linger.ms": "x"}), (ProducerConfig, {"enable.idempotence": "1"})]:
        with pytest.raises(ConfigError, match="expected"):
            configured(cls, bad)
    with pytest.raises(ConfigError, match="expected one of all"):
        _ = ProducerConfig(acks="2").required_acks
    with pytest.raises(ConfigError, match="isolation"):
        _ = ConsumerConfig(isolation_level="dirty").isolation
    assert not ProducerConfig(acks="1").is_idempotent


def test_markers_of_the_last_transaction_are_not_waited_for_as_long_as_failures() -> None:
    """Kafka's producer, too, pauses shorter where a transaction begins while the last one ends."""
    cluster = Cluster("localhost:1", randomness=_Middle())
    ending = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is ending")
    delays = [cluster.retry_delay_ms(failures, ending) for failures in range(7)]
    assert delays[:5] == [4, 8, 16, 32, 64]
    assert min(delays[5:]) > 500
