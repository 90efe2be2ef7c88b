"""Batches that lie: refused with the error that Apache Kafka has for them, or readable by every consumer.

tests/interop compares the same batches with Apache Kafka itself.
"""

from broker_process import StartBroker
from confluent_kafka import Consumer, KafkaError, TopicPartition
from lying_batches import GOOD, RECORDS, all_lies, expected_code
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import crc_matches, iter_headers
from sskafka.records.record import decode_records


def test_lies_are_refused_and_what_is_stored_stops_no_consumer(start_broker: StartBroker) -> None:
    broker = start_broker()
    lies = all_lies()
    with Connection(broker.bootstrap) as client:
        client.create_topic("lies", partitions=len(lies))
        answers = {name: client.produce("lies", lies[name], number) for number, name in enumerate(lies)}
        codes = {name: ErrorCode(answer.error_code) for name, answer in answers.items()}
        assert codes == {name: expected_code(name) for name in lies}
        stored = [number for number, name in enumerate(lies) if codes[name] is ErrorCode.NONE]
        for number in stored:
            assert client.produce("lies", GOOD, number).error_code == 0
            check_headers(bytes(client.fetch("lies", 0, number).records or b""))
    offsets = consumed(broker.bootstrap, stored)
    assert {name: offsets[number] for number, name in enumerate(lies) if number in offsets} == {
        name: list(range(2 * len(RECORDS))) for name, code in codes.items() if code is ErrorCode.NONE
    }


def check_headers(batches: bytes) -> None:
    """A header says the largest timestamp of its records, whatever the producer wrote there."""
    for position, header in iter_headers(batches):
        assert crc_matches(batches, header, position)
        timestamps = [record.timestamp for record in decode_records(batches, header, position)]
        assert header.max_timestamp == max(-1, *timestamps)


def consumed(bootstrap: str, partitions: list[int]) -> dict[int, list[int]]:
    """Return the offsets that librdkafka reads from each partition of the topic, once it has reached all ends."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    })  # fmt: skip
    offsets: dict[int, list[int]] = {number: [] for number in partitions}
    ended: set[int] = set()

    def has_read_all() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            error = message.error()
            if error is None:
                offsets[message.partition()].append(message.offset())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
        return len(ended) == len(partitions)

    try:
        consumer.assign([TopicPartition("lies", number, 0) for number in partitions])
        wait_until(has_read_all, "every partition is read to its end", 60)
    finally:
        consumer.close()
    return offsets
