"""confluent-kafka (librdkafka): transactions in the first version of the protocol."""

import pytest
from clients import confluent_consumer, confluent_producer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from transaction_clients import TIMEOUT_S, read, transactional, write
from wire_connection import Connection


def test_committed_and_aborted_transactions(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 2)
    producer = transactional(bootstrap, topic)
    for number, commits in enumerate([True, False, True]):
        producer.begin_transaction()
        for partition in range(2):
            write(producer, topic, f"{number}", partition=partition)
        if commits:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
    assert sorted(read(bootstrap, topic, partitions=2)) == ["0", "0", "2", "2"]
    assert sorted(read(bootstrap, topic, "read_uncommitted", 2)) == ["0", "0", "1", "1", "2", "2"]


def test_an_open_transaction_holds_back_those_who_read_committed(
    bootstrap: str, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic)
    producer = transactional(bootstrap, topic)
    producer.begin_transaction()
    write(producer, topic, "open")
    write(confluent_producer(bootstrap), topic, "after")
    assert read(bootstrap, topic) == []
    assert read(bootstrap, topic, "read_uncommitted") == ["open", "after"]
    producer.commit_transaction(TIMEOUT_S)
    assert read(bootstrap, topic) == ["open", "after"]


def test_a_newer_producer_of_the_same_id_fences_the_older(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    older = transactional(bootstrap, topic)
    older.begin_transaction()
    write(older, topic, "stolen")
    newer = transactional(bootstrap, topic)
    with pytest.raises(KafkaException) as fenced:
        older.commit_transaction(TIMEOUT_S)
    assert fenced.value.args[0].fatal()
    newer.begin_transaction()
    write(newer, topic, "kept")
    newer.commit_transaction(TIMEOUT_S)
    assert read(bootstrap, topic) == ["kept"]


def test_reading_transforming_and_writing_with_offsets(bootstrap: str, connection: Connection, topic: str) -> None:
    source, target = f"{topic}-source", f"{topic}-target"
    connection.create_topic(source)
    connection.create_topic(target)
    write(confluent_producer(bootstrap), source, *"abcdef")
    producer = transactional(bootstrap, topic)
    consumer = group_consumer(bootstrap, topic, source)
    copy(consumer, producer, target, 3, commit=True)
    copy(consumer, producer, target, 2, commit=False)
    consumer.close()
    again = group_consumer(bootstrap, topic, source)
    assert committed_offset(again, source) == 3
    copy(again, producer, target, 3, commit=True)
    again.close()
    assert read(bootstrap, target) == list("ABCDEF")


def group_consumer(bootstrap: str, group: str, topic: str) -> Consumer:
    consumer = confluent_consumer(
        bootstrap, group_id=group, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    consumer.subscribe([topic])
    return consumer


def copy(consumer: Consumer, producer: Producer, target: str, count: int, *, commit: bool) -> None:
    producer.begin_transaction()
    for _ in range(count):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is None, message.error()
        producer.produce(target, message.value().upper())
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TIMEOUT_S)
    if commit:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)


def committed_offset(consumer: Consumer, topic: str) -> int:
    (found,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
    return int(found.offset)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_many_transactions_over_many_partitions(bootstrap: str, connection: Connection, topic: str, codec: str) -> None:
    connection.create_topic(topic, 6)
    producer = transactional(bootstrap, topic, compression_type=codec)
    for number in range(20):
        producer.begin_transaction()
        for partition in range(6):
            producer.produce(topic, f"{number}", partition=partition)
        if number % 3:
            producer.commit_transaction(TIMEOUT_S)
        else:
            assert producer.flush(TIMEOUT_S) == 0
            producer.abort_transaction(TIMEOUT_S)
    expected = sorted(str(number) for number in range(20) if number % 3 for _ in range(6))
    assert sorted(read(bootstrap, topic, partitions=6)) == expected
