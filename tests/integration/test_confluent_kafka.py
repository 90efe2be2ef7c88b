"""confluent-kafka (librdkafka): producing and consuming by assignment."""

import time
from collections.abc import Iterator

import pytest
from clients import (
    CODECS,
    Message,
    confluent_consumer,
    confluent_producer,
    confluent_send,
    confluent_take,
)
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from wire_connection import Connection

BASE_TIME_MS = 1_700_000_000_000
TIMEOUT_S = 15


@pytest.fixture
def producer(bootstrap: str) -> Producer:
    return confluent_producer(bootstrap)


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[Consumer]:
    consumer = confluent_consumer(bootstrap)
    yield consumer
    consumer.close()


def numbered(count: int, start: int = 0) -> list[Message]:
    return [Message(b"%d" % n, timestamp=BASE_TIME_MS + 1000 * n) for n in range(start, start + count)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_delivers_in_order(
    bootstrap: str, consumer: Consumer, connection: Connection, topic: str, acks: str
) -> None:
    connection.create_topic(topic)
    reports = confluent_send(confluent_producer(bootstrap, acks=acks), topic, numbered(300))
    if acks != "0":
        assert [report.offset() for report in reports] == list(range(300))
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [message.value for message in confluent_take(consumer, 300)] == [b"%d" % n for n in range(300)]


@pytest.mark.parametrize("codec", CODECS)
def test_idempotent_producer(
    bootstrap: str, consumer: Consumer, connection: Connection, topic: str, codec: str
) -> None:
    connection.create_topic(topic, 3)
    producer = confluent_producer(bootstrap, enable_idempotence=True, compression_type=codec, batch_num_messages=50)
    for partition in range(3):
        reports = confluent_send(producer, topic, numbered(500), partition)
        assert [report.offset() for report in reports] == list(range(500))
        consumer.assign([TopicPartition(topic, partition, 490)])
        assert [message.value for message in confluent_take(consumer, 10)] == [b"%d" % n for n in range(490, 500)]


def test_keys_choose_the_partition(bootstrap: str, consumer: Consumer, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 4)
    producer = confluent_producer(bootstrap, partitioner="murmur2_random")
    reports = confluent_send(producer, topic, [Message(b"v", key=b"key-%d" % (n % 20)) for n in range(200)], -1)
    partition_of = {(report.key(), report.partition()) for report in reports}
    assert len(partition_of) == 20
    assert len({partition for _, partition in partition_of}) > 1
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(4)])
    assert len(confluent_take(consumer, 200)) == 200


def test_seek_by_offset(producer: Producer, consumer: Consumer, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    confluent_send(producer, topic, numbered(100))
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    assert confluent_take(consumer, 1)[0].offset == 0
    for offset in (70, 3, 99, 0):
        consumer.seek(TopicPartition(topic, 0, offset))
        assert confluent_take(consumer, 1)[0].offset == offset


def test_offsets_by_time(producer: Producer, consumer: Consumer, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    for start in (0, 50):  # two batches, so that one of them is skipped over
        confluent_send(producer, topic, numbered(50, start))
    for seconds, offset in ((-1, 0), (0, 0), (0.5, 1), (42, 42), (50, 50), (98.001, 99)):
        wanted = TopicPartition(topic, 0, BASE_TIME_MS + int(seconds * 1000))
        (found,) = consumer.offsets_for_times([wanted], timeout=TIMEOUT_S)
        assert (found.error, found.offset) == (None, offset), seconds
    (beyond,) = consumer.offsets_for_times([TopicPartition(topic, 0, BASE_TIME_MS + 99_001)], timeout=TIMEOUT_S)
    assert beyond.offset == OFFSET_END


def test_watermarks(producer: Producer, consumer: Consumer, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    partition = TopicPartition(topic, 0)
    assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, 0)
    confluent_send(producer, topic, numbered(12))
    assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, 12)


def test_end_of_partition_is_reported(bootstrap: str, producer: Producer, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    confluent_send(producer, topic, numbered(2))
    consumer = confluent_consumer(bootstrap, enable_partition_eof=True)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        confluent_take(consumer, 2)
        end = consumer.poll(TIMEOUT_S)
        assert (end.error().code(), end.offset()) == (KafkaError._PARTITION_EOF, 2)
    finally:
        consumer.close()


def test_waiting_consumer_gets_a_record_at_once(
    bootstrap: str, producer: Producer, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic)
    confluent_send(producer, topic, [Message(b"first")])
    consumer = confluent_consumer(bootstrap, fetch_wait_max_ms=10_000)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        confluent_take(consumer, 1)  # the next fetch is parked at the broker, for up to ten seconds
        began = time.monotonic()
        confluent_send(producer, topic, [Message(b"second")])
        assert confluent_take(consumer, 1)[0].value == b"second"
        assert time.monotonic() - began < 5
    finally:
        consumer.close()


def test_tiny_fetch_sizes_still_make_progress(
    bootstrap: str, producer: Producer, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic)
    for _ in range(5):
        confluent_send(producer, topic, [Message(bytes(50_000))])
    consumer = confluent_consumer(bootstrap, fetch_message_max_bytes=1000, fetch_max_bytes=1000, message_max_bytes=1000)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [len(message.value or b"") for message in confluent_take(consumer, 5)] == [50_000] * 5
    finally:
        consumer.close()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_isolation_levels_agree_on_plain_records(
    bootstrap: str, producer: Producer, connection: Connection, topic: str, isolation: str
) -> None:
    connection.create_topic(topic)
    confluent_send(producer, topic, numbered(10))
    consumer = confluent_consumer(bootstrap, isolation_level=isolation)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [message.offset for message in confluent_take(consumer, 10)] == list(range(10))
    finally:
        consumer.close()


def test_messages_near_the_size_limit_pass_and_above_it_are_refused(
    bootstrap: str, consumer: Consumer, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic, max_message_bytes=200_000)
    producer = confluent_producer(bootstrap, message_max_bytes=10_000_000)
    confluent_send(producer, topic, [Message(bytes(199_900))])
    with pytest.raises(KafkaException) as refusal:
        confluent_send(producer, topic, [Message(bytes(200_000))])
    assert refusal.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    confluent_send(producer, topic, [Message(b"after")])
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [len(message.value or b"") for message in confluent_take(consumer, 2)] == [199_900, 5]


def test_large_messages(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, max_message_bytes=12_000_000)
    value = bytes(range(256)) * 40_000  # 10 MB
    producer = confluent_producer(bootstrap, message_max_bytes=20_000_000)
    confluent_send(producer, topic, [Message(value)] * 2)
    consumer = confluent_consumer(bootstrap)  # asks for 1 MB of a partition: the first batch comes whole all the same
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [message.value == value for message in confluent_take(consumer, 2)] == [True, True]
    finally:
        consumer.close()


def test_compacted_topics_refuse_records_without_a_key(producer: Producer, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, cleanup_policy="compact")
    with pytest.raises(KafkaException) as refusal:
        confluent_send(producer, topic, [Message(b"no key")])
    assert refusal.value.args[0].code() == KafkaError.INVALID_RECORD
    (report,) = confluent_send(producer, topic, [Message(b"value", key=b"key")])
    assert report.offset() == 0


def test_reading_outside_the_log_is_an_error_or_a_reset(
    bootstrap: str, producer: Producer, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic)
    confluent_send(producer, topic, numbered(5))
    strict = confluent_consumer(bootstrap, auto_offset_reset="error")
    lenient = confluent_consumer(bootstrap, auto_offset_reset="earliest")
    try:
        strict.assign([TopicPartition(topic, 0, 1000)])
        assert strict.poll(TIMEOUT_S).error().code() == KafkaError._AUTO_OFFSET_RESET
        lenient.assign([TopicPartition(topic, 0, 1000)])
        assert confluent_take(lenient, 1)[0].offset == 0
    finally:
        strict.close()
        lenient.close()
