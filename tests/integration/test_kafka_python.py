"""kafka-python: producing, consuming by assignment, its admin client."""

import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import kafka
import pytest
from clients import kafka_python_take
from kafka import TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, KafkaAdminClient, OffsetSpec
from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from waiting import wait_until
from wire_connection import Connection

BASE_TIME_MS = 1_700_000_000_000
TIMEOUT_S = 20


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        yield admin


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[kafka.KafkaConsumer]:
    with closing(kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")) as consumer:
        yield consumer


def send_numbered(bootstrap: str, topic: str, count: int, partition: int = 0, **options: Any) -> list[int]:
    """Sends 0, 1, 2, ... as text, a second apart, and returns their offsets (-1 where nobody tells)."""
    with closing(kafka.KafkaProducer(bootstrap_servers=bootstrap, **options)) as producer:
        sent = [
            producer.send(topic, b"%d" % n, partition=partition, timestamp_ms=BASE_TIME_MS + 1000 * n)
            for n in range(count)
        ]
        return [future.get(TIMEOUT_S).offset for future in sent]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_setting_delivers_in_order(
    bootstrap: str, consumer: kafka.KafkaConsumer, connection: Connection, topic: str, acks: int | str
) -> None:
    connection.create_topic(topic)
    offsets = send_numbered(bootstrap, topic, 200, acks=acks, enable_idempotence=False)
    assert acks == 0 or offsets == list(range(200))
    consumer.assign([TopicPartition(topic, 0)])
    assert [m.value for m in kafka_python_take(consumer, 200)] == [b"%d" % n for n in range(200)]


def test_idempotent_producer(bootstrap: str, admin: KafkaAdminClient, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 2)
    options = {"enable_idempotence": True, "batch_size": 300, "acks": "all"}
    for partition in (0, 1):
        assert send_numbered(bootstrap, topic, 300, partition, **options) == list(range(300))
    described = admin.describe_producers([TopicPartition(topic, 0)])
    (producer,) = described[TopicPartition(topic, 0)].active_producers
    assert (producer.producer_epoch, producer.last_sequence) == (0, 299)


def test_seek_offsets_and_times(
    bootstrap: str, consumer: kafka.KafkaConsumer, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic)
    send_numbered(bootstrap, topic, 100)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 100}
    for offset in (70, 3, 99):
        consumer.seek(partition, offset)
        assert kafka_python_take(consumer, 1)[0].offset == offset
    assert consumer.position(partition) == 100
    found = consumer.offsets_for_times({partition: BASE_TIME_MS + 41_500})[partition]
    assert (found.offset, found.timestamp) == (42, BASE_TIME_MS + 42_000)
    assert consumer.offsets_for_times({partition: BASE_TIME_MS + 99_001}) == {partition: None}


def test_small_fetches_and_read_committed(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    with closing(kafka.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        for n in range(4):
            producer.send(topic, bytes([n]) * 20_000, partition=0).get(TIMEOUT_S)
    options = {"max_partition_fetch_bytes": 500, "fetch_max_bytes": 500, "isolation_level": "read_committed"}
    with closing(kafka.KafkaConsumer(bootstrap_servers=bootstrap, **options)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        assert [m.value for m in kafka_python_take(consumer, 4)] == [bytes([n]) * 20_000 for n in range(4)]


def test_too_large_messages_are_refused(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, max_message_bytes=100_000)
    with closing(kafka.KafkaProducer(bootstrap_servers=bootstrap, max_request_size=10_000_000)) as producer:
        assert producer.send(topic, bytes(99_900), partition=0).get(TIMEOUT_S).offset == 0
        with pytest.raises(MessageSizeTooLargeError):
            producer.send(topic, bytes(100_000), partition=0).get(TIMEOUT_S)


def test_offsets_outside_the_log_are_errors(bootstrap: str, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    send_numbered(bootstrap, topic, 3)
    with closing(kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none")) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 50)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(TIMEOUT_S * 1000)


def test_producing_creates_the_topic(bootstrap: str, topic: str) -> None:
    assert send_numbered(bootstrap, topic, 2) == [0, 1]


def test_admin_topics(admin: KafkaAdminClient, topic: str) -> None:
    admin.create_topics({topic: {"num_partitions": 2, "configs": {"retention.ms": "777"}}}, wait_for_metadata=True)
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([topic])
    assert topic in admin.list_topics()
    admin.create_partitions({topic: 4})
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 1})
    (described,) = admin.describe_topics([topic])
    assert sorted(p["partition_index"] for p in described["partitions"]) == [0, 1, 2, 3]
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_topics_by_id(admin: KafkaAdminClient, connection: Connection, topic: str) -> None:
    topic_id = uuid.UUID(bytes=connection.create_topic(topic))
    (described,) = admin.describe_topics([topic_id])
    assert (described["name"], described["error_code"]) == (topic, 0)
    admin.delete_topics([topic_id])
    wait_until(lambda: topic not in admin.list_topics(), "the topic is gone")


def test_describe_topic_partitions_in_pages(admin: KafkaAdminClient, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 5)
    page = admin.describe_topic_partitions([topic], response_partition_limit=3)
    assert [p["partition_index"] for p in page["topics"][0]["partitions"]] == [0, 1, 2]
    rest = admin.describe_topic_partitions([topic], response_partition_limit=3, cursor=page["next_cursor"])
    assert [p["partition_index"] for p in rest["topics"][0]["partitions"]] == [3, 4]
    assert rest["next_cursor"] is None


def test_admin_settings(admin: KafkaAdminClient, connection: Connection, topic: str) -> None:
    connection.create_topic(topic, segment_bytes=2_000_000)

    def described(config_filter: str = "modified", **options: Any) -> dict[str, Any]:
        answer = admin.describe_configs([ConfigResource("topic", topic)], config_filter=config_filter, **options)
        settings: dict[str, Any] = answer["topic"][topic]
        return settings

    def alter(name: str, value: Any) -> str:
        answer = admin.alter_configs([ConfigResource("topic", topic, {name: value})], raise_on_unknown=False)
        outcome: str = answer["topic"][topic]
        return outcome

    assert {name: entry["value"] for name, entry in described().items()} == {"segment.bytes": "2000000"}
    synonyms = described("all", include_synonyms=True)["segment.bytes"]["synonyms"]
    assert [(s["name"], s["value"], s["source"]) for s in synonyms] == [
        ("segment.bytes", "2000000", "DYNAMIC_TOPIC_CONFIG"),
        ("log.segment.bytes", "1073741824", "DEFAULT_CONFIG"),
    ]
    assert alter("retention.ms", "5000") == "OK"
    wait_until(lambda: set(described()) == {"segment.bytes", "retention.ms"}, "both settings are seen")
    assert alter("segment.bytes", (AlterConfigOp.DELETE, None)) == "OK"
    wait_until(lambda: set(described()) == {"retention.ms"}, "the setting is gone")
    assert InvalidConfigurationError.__name__ in alter("retention.ms", "soon")
    assert described()["retention.ms"]["value"] == "5000"


def test_delete_records_and_list_offsets(
    bootstrap: str, admin: KafkaAdminClient, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic)
    send_numbered(bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)
    assert admin.delete_records({partition: 6})[partition]["low_watermark"] == 6
    for spec, offset in ((OffsetSpec.EARLIEST, 6), (OffsetSpec.LATEST, 10), (OffsetSpec.MAX_TIMESTAMP, 9)):
        assert admin.list_partition_offsets({partition: spec})[partition].offset == offset, spec
    assert admin.list_partition_offsets({partition: BASE_TIME_MS + 7500})[partition].offset == 8


def test_describe_cluster_and_log_dirs(
    bootstrap: str, admin: KafkaAdminClient, connection: Connection, topic: str
) -> None:
    connection.create_topic(topic, 2)
    send_numbered(bootstrap, topic, 5)
    cluster = admin.describe_cluster()
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    (answer,) = admin.describe_log_dirs([topic])
    (directory,) = answer["log_dirs"]
    assert directory["error_code"] == 0
    assert directory["log_dir"].startswith("/")
    sizes = {p["partition_index"]: p["partition_size"] for p in directory["topics"][0]["partitions"]}
    assert set(sizes) == {0, 1}
    assert sizes[0] > 0 == sizes[1]


def test_features(admin: KafkaAdminClient) -> None:
    features = admin.describe_features()
    assert features["metadata.version"]["finalized"][1] >= 1
