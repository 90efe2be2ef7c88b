"""`sskafka.Producer` and `sskafka.Consumer` as a program uses them, against a real broker."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

import sskafka
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.errors import ConfigError, UnknownTopicError
from sskafka.client.fetched import ConsumedRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.records.partitioner import murmur3, partition_for_key


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    async def work() -> None:
        async with Cluster(bootstrap) as cluster:
            await Admin(cluster).create_topics([NewTopic(topic, partitions, 1)])

    asyncio.run(work())


def poll_all(consumer: sskafka.Consumer, count: int, n: int = 100) -> list[ConsumedRecord]:
    """Until `count` records have come; fails when they stop coming."""
    records: list[ConsumedRecord] = []
    while len(records) < count:
        some = consumer.poll(n, timeout_ms=5000)
        assert some, f"only {len(records)} of {count} records came"
        assert len(some) <= n
        records += some
    return records


def values(records: list[ConsumedRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def test_there_and_back(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 3)
    with sskafka.Producer(bootstrap, compression_type="lz4") as producer:
        single = producer.send(topic, "key", "value", headers=(("h", b"1"),), timestamp=12345)
        batch = producer.send_batch(topic, "key", [b"%d" % number for number in range(1000)])
        unkeyed = producer.send(topic, None, None, partition=2)
    expected = partition_for_key(b"key", 3)
    assert single.partition == (topic, expected)
    assert [delivery.offset for delivery in batch] == [single.offset + 1 + number for number in range(1000)]
    assert {delivery.partition for delivery in batch} == {single.partition}
    assert unkeyed.partition == (topic, 2)
    with sskafka.Consumer(bootstrap) as consumer:
        consumer.subscribe(topic, expected)
        records = [record for record in poll_all(consumer, 1001) if record.key == b"key"]
        assert values(records) == [b"value", *(b"%d" % number for number in range(1000))]
        first = records[0]
        assert (first.offset, first.timestamp, first.headers) == (single.offset, 12345, (("h", b"1"),))


def test_poll_gives_the_subscriptions_in_turn(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 3)
    with sskafka.Producer(bootstrap) as producer:
        for partition in range(3):
            producer.send_batch(topic, None, [b"x"] * 30, partition=partition)
    with sskafka.Consumer(bootstrap) as consumer:
        consumer.subscribe(topic)
        assert {subscription.partition for subscription in consumer.subscriptions} == {0, 1, 2}
        records = poll_all(consumer, 90, n=6)
        for partition in range(3):
            assert [record.offset for record in records if record.partition == partition] == list(range(30))
        assert [record.partition for record in records[:6]] == [0, 0, 1, 1, 2, 2]
        assert [consumer.position(topic, partition) for partition in range(3)] == [30, 30, 30]


def test_offset_0_is_the_start_and_minus_1_the_end(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    with sskafka.Producer(bootstrap) as producer, sskafka.Consumer(bootstrap, fetch_max_wait_ms=50) as consumer:
        producer.send_batch(topic, None, [b"0", b"1", b"2"])
        consumer.subscribe(topic, 0, offset=-1)
        assert consumer.position(topic, 0) == 3
        producer.send(topic, None, b"3")
        assert values(poll_all(consumer, 1)) == [b"3"]
        consumer.seek(topic, 0, 1)
        assert values(poll_all(consumer, 3)) == [b"1", b"2", b"3"]
        delete_records_before(bootstrap, topic, 2)
        consumer.seek(topic, 0, 0)
        assert values(poll_all(consumer, 2)) == [b"2", b"3"]
        with pytest.raises(ValueError, match="invalid offset -7"):
            consumer.seek(topic, 0, -7)
        consumer.unsubscribe(topic)
        assert consumer.poll(timeout_ms=10) == []


def delete_records_before(bootstrap: str, topic: str, offset: int) -> None:
    async def work() -> None:
        async with Cluster(bootstrap) as cluster:
            await Admin(cluster).delete_records({TopicPartition(topic, 0): offset})

    asyncio.run(work())


def test_metadata_is_fetched_by_one_client_and_used_by_another(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 2)
    with sskafka.Consumer(bootstrap) as first:
        metadata = first.fetchClusterMetadata()
    assert set(metadata.topics[topic].partitions) == {0, 1}
    with sskafka.Producer(None) as producer, sskafka.Consumer(None) as consumer:
        producer.setClusterMetadata(metadata)
        assert [delivery.offset for delivery in producer.sendBatch(topic, None, [b"a", b"b"], partition=1)] == [0, 1]
        consumer.setClusterMetadata(metadata)
        consumer.subscribe(topic, 1)
        assert values(poll_all(consumer, 2)) == [b"a", b"b"]


def test_threads_share_a_producer(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    offsets: list[int] = []
    with sskafka.Producer(bootstrap) as producer:

        def send() -> None:
            offsets.extend([producer.send(topic, None, b"x").offset for _ in range(25)])

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(offsets) == list(range(100))


def test_the_hash_of_keys_can_be_chosen(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, 5)
    with sskafka.Producer(bootstrap, partitioner_hash="murmur3") as producer:
        for number in range(10):
            key = b"key-%d" % number
            assert producer.send(topic, key, b"").partition.partition == partition_for_key(key, 5, murmur3)


def test_failures_are_raised_where_they_happen(bootstrap: str, new_topic: Callable[[str], str]) -> None:
    with pytest.raises(ConfigError, match=r"no client property 'linger.sm'; did you mean linger.ms\?"):
        sskafka.Producer(bootstrap, **{"linger.sm": 5})
    topic = new_topic("missing")
    with sskafka.Consumer(bootstrap) as consumer:
        with pytest.raises(UnknownTopicError):
            consumer.subscribe(topic, 0)
        create(bootstrap, topic)
        with pytest.raises(UnknownTopicError, match="has no partition 7"):
            consumer.subscribe(topic, 7)
    with sskafka.Producer(bootstrap) as producer:
        with pytest.raises(KafkaError) as caught:
            producer.send(topic, None, b"x" * 2_000_000)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert producer.send(topic, None, b"x").offset == 0
    with pytest.raises(RuntimeError, match="closed"):
        producer.send(topic, None, b"x")
    producer.close()


def test_the_asyncio_form(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)

    async def work() -> None:
        async with sskafka.AsyncProducer(bootstrap) as producer, sskafka.AsyncConsumer(bootstrap) as consumer:
            sent = await asyncio.gather(*(producer.send(topic, None, b"%d" % number) for number in range(200)))
            assert sorted(delivery.offset for delivery in sent) == list(range(200))
            assert len(await producer.send_batch(topic, "k", ["a", "b"])) == 2
            await consumer.subscribe(topic, 0, leader_only=False)
            count = 0
            while count < 202:
                records = await consumer.poll(50, timeout_ms=5000)
                assert records
                count += len(records)
            assert consumer.source(topic, 0) in (await consumer.fetch_cluster_metadata()).brokers

    asyncio.run(work())


def test_a_program_that_forgets_to_close_its_clients_ends_silently(bootstrap: str, topic: str) -> None:
    program = f"""
import sskafka
producer = sskafka.Producer({bootstrap!r})
producer.send({topic!r}, None, "x")
consumer = sskafka.Consumer({bootstrap!r})
consumer.subscribe({topic!r})
print(len(consumer.poll(5, timeout_ms=5000)))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
