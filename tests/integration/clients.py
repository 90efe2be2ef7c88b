"""The same two deeds by each client library: write messages to a partition, read a number of them from an offset.

Readers are assigned their partition; none joins a group.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka
import kafka
from kafka.codec import has_lz4, has_snappy, has_zstd

TIMEOUT_S = 20
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# kafka-python compresses by optional packages.
KAFKA_PYTHON_CODECS = (
    "none",
    "gzip",
    *(codec for codec, present in (("snappy", has_snappy()), ("lz4", has_lz4()), ("zstd", has_zstd())) if present),
)


class Message(NamedTuple):
    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None


class Received(NamedTuple):
    offset: int
    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class Client(NamedTuple):
    name: str
    codecs: Sequence[str]
    write: Callable[[str, str, Sequence[Message], str], None]
    """bootstrap, topic, messages for partition 0, compression"""
    read: Callable[[str, str, int, int], list[Received]]
    """bootstrap, topic, first offset, count"""
    writes_null_headers: bool = True

    def __repr__(self) -> str:
        return self.name


# ---------------------------------------------------------------------------------------------------- confluent-kafka


def confluent_producer(bootstrap: str, **config: Any) -> confluent_kafka.Producer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **settings})


def confluent_consumer(bootstrap: str, **config: Any) -> confluent_kafka.Consumer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    defaults = {"group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": 100}
    return confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **defaults, **settings})


def confluent_send(
    producer: confluent_kafka.Producer, topic: str, messages: Sequence[Message], partition: int = 0
) -> list[confluent_kafka.Message]:
    """Sends and waits: what the delivery reports said, in order; raises on the first that failed."""
    reports: list[confluent_kafka.Message] = []

    def report(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        reports.append(message)

    for message in messages:
        extra = {} if message.timestamp is None else {"timestamp": message.timestamp}
        producer.produce(
            topic, message.value, message.key, partition, report, headers=list(message.headers) or None, **extra
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert len(reports) == len(messages)
    for message in reports:
        if message.error() is not None:
            raise confluent_kafka.KafkaException(message.error())
    return reports


def confluent_take(consumer: confluent_kafka.Consumer, count: int) -> list[Received]:
    """The next `count` messages of an assigned consumer."""
    received: list[Received] = []
    while len(received) < count:
        messages = consumer.consume(count - len(received), TIMEOUT_S)
        assert messages, f"{len(received)} of {count} messages came within {TIMEOUT_S} s"
        for message in messages:
            if message.error() is not None:
                raise confluent_kafka.KafkaException(message.error())
            headers = tuple((key, value) for key, value in message.headers() or ())
            received.append(Received(message.offset(), message.value(), message.key(), headers, message.timestamp()[1]))
    return received


def _confluent_write(bootstrap: str, topic: str, messages: Sequence[Message], codec: str) -> None:
    confluent_send(confluent_producer(bootstrap, compression_type=codec, linger_ms=50), topic, messages)


def _confluent_read(bootstrap: str, topic: str, offset: int, count: int) -> list[Received]:
    consumer = confluent_consumer(bootstrap)
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
        return confluent_take(consumer, count)
    finally:
        consumer.close()


# ----------------------------------------------------------------------------------------------------------- aiokafka


async def aiokafka_take(consumer: aiokafka.AIOKafkaConsumer, count: int) -> list[Received]:
    received: list[Received] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(received) < count:
            message = await consumer.getone()
            received.append(
                Received(message.offset, message.value, message.key, tuple(message.headers), message.timestamp)
            )
    return received


def _aiokafka_write(bootstrap: str, topic: str, messages: Sequence[Message], codec: str) -> None:
    async def write() -> None:
        compression = None if codec == "none" else codec
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=compression, linger_ms=20
        ) as producer:
            sent = [
                await producer.send(topic, m.value, m.key, 0, m.timestamp, list(m.headers) or None) for m in messages
            ]
            await asyncio.gather(*sent)

    asyncio.run(write())


def _aiokafka_read(bootstrap: str, topic: str, offset: int, count: int) -> list[Received]:
    async def read() -> list[Received]:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            partition = aiokafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            return await aiokafka_take(consumer, count)

    return asyncio.run(read())


# ------------------------------------------------------------------------------------------------------- kafka-python


def kafka_python_take(consumer: kafka.KafkaConsumer, count: int) -> list[Received]:
    received: list[Received] = []
    while len(received) < count:
        polled = consumer.poll(TIMEOUT_S * 1000, max_records=count - len(received))
        assert polled, f"{len(received)} of {count} messages came within {TIMEOUT_S} s"
        for messages in polled.values():
            received += (Received(m.offset, m.value, m.key, tuple(m.headers), m.timestamp) for m in messages)
    return received


def _kafka_python_write(bootstrap: str, topic: str, messages: Sequence[Message], codec: str) -> None:
    compression = None if codec == "none" else codec
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type=compression, linger_ms=20)
    try:
        sent = [producer.send(topic, m.value, m.key, list(m.headers), 0, m.timestamp) for m in messages]
        for future in sent:
            future.get(TIMEOUT_S)
    finally:
        producer.close()


def _kafka_python_read(bootstrap: str, topic: str, offset: int, count: int) -> list[Received]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        return kafka_python_take(consumer, count)
    finally:
        consumer.close()


CONFLUENT = Client("confluent-kafka", CODECS, _confluent_write, _confluent_read)
AIOKAFKA = Client("aiokafka", CODECS, _aiokafka_write, _aiokafka_read)
KAFKA_PYTHON = Client("kafka-python", KAFKA_PYTHON_CODECS, _kafka_python_write, _kafka_python_read, False)
CLIENTS = (CONFLUENT, AIOKAFKA, KAFKA_PYTHON)
