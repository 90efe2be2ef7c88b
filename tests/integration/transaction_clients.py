"""Transactions by confluent-kafka, as several tests need them: a producer, writing, and reading what counts."""

from clients import confluent_consumer, confluent_producer
from confluent_kafka import KafkaError, Producer, TopicPartition

TIMEOUT_S = 20


def transactional(bootstrap: str, transactional_id: str, **config: object) -> Producer:
    producer = confluent_producer(bootstrap, transactional_id=transactional_id, **config)
    producer.init_transactions(TIMEOUT_S)
    return producer


def write(producer: Producer, topic: str, *values: str, partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def read(bootstrap: str, topic: str, isolation: str = "read_committed", partitions: int = 1) -> list[str]:
    """Everything up to the end that the isolation level shows."""
    consumer = confluent_consumer(bootstrap, isolation_level=isolation, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: list[str] = []
    ends = 0
    try:
        while ends < partitions:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing came after {found}"
            error = message.error()
            if error is None:
                found.append(message.value().decode())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends += 1
    finally:
        consumer.close()
    return found
