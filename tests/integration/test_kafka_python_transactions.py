"""kafka-python: transactions in the first version of the protocol."""

import kafka
import pytest
from kafka.errors import KafkaError
from transaction_clients import read
from wire_connection import Connection


def test_commit_abort_and_fencing(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    producer.init_transactions()
    for value, commits in ((b"first", True), (b"aborted", False), (b"second", True)):
        producer.begin_transaction()
        producer.send(topic, value).get(20)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    newer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    newer.init_transactions()
    with pytest.raises(KafkaError):
        write_late(producer, topic)
    newer.close()
    producer.close(0)
    assert read(bootstrap, topic) == ["first", "second"]


def write_late(producer: "kafka.KafkaProducer", topic: str) -> None:
    producer.begin_transaction()
    producer.send(topic, b"late").get(20)
    producer.commit_transaction()
