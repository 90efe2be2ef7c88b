"""One log, two protocols: what is stored over HTTP is read by Kafka clients, and the other way round."""

from collections.abc import Iterator

import pytest
from broker_process import BrokerProcess
from confluent_kafka import Consumer, Producer, TopicPartition
from http_client import HttpClient

from sskafka.records.partitioner import partition_for_key

PARTITIONS = 5
KEYS = [f"key-{number}" for number in range(40)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("http-and-kafka"), {"http.listener": "127.0.0.1:0"})
    try:
        yield broker.start()
    finally:
        broker.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def test_records_stored_over_http_are_read_by_kafka_clients(broker: BrokerProcess, http: HttpClient) -> None:
    http.create("overhttp", PARTITIONS)
    for key in KEYS:
        number = partition_for_key(key.encode(), PARTITIONS) + 1
        http.produce(f"overhttp-{number}", f"payload of {key}", key)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition("overhttp", number, 0) for number in range(PARTITIONS)])
    try:
        messages = consumer.consume(len(KEYS), timeout=15)
    finally:
        consumer.close()
    assert sorted((message.key(), message.value()) for message in messages) == sorted(
        (key.encode(), f"payload of {key}".encode()) for key in KEYS
    )


def test_records_of_kafka_clients_are_where_their_keys_belong(broker: BrokerProcess, http: HttpClient) -> None:
    http.create("overkafka", PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    for key in KEYS:
        producer.produce("overkafka", key=key, value=f"payload of {key}")
    assert producer.flush(15) == 0
    for number in range(PARTITIONS):
        found = http.consume(f"overkafka-{number + 1}")["records"]
        expected = [key for key in KEYS if partition_for_key(key.encode(), PARTITIONS) == number]
        assert [record["key"] for record in found] == expected
        assert [record["payload"] for record in found] == [f"payload of {key}" for key in expected]


def test_topics_of_kafka_clients_are_listed_and_served(broker: BrokerProcess, http: HttpClient) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("with-dashes", value="x")
    assert producer.flush(15) == 0
    listed = [topic["topic_name"] for topic in http.get("/admin/v1/topics")[1]["topics"]]
    assert "with-dashes" in listed
    assert not [name for name in listed if name.startswith("__")]
    assert http.consume("with-dashes-1")["records"] == [{"offset": 0, "key": None, "payload": "x"}]
    assert http.delete("/admin/v1/topics/with-dashes") == (204, None)
