"""confluent-kafka's admin client: topics, partitions, settings, records, the cluster."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from clients import Message, confluent_consumer, confluent_producer, confluent_send, confluent_take
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from waiting import wait_until
from wire_connection import Connection

TIMEOUT_S = 15


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[Consumer]:
    consumer = confluent_consumer(bootstrap)
    yield consumer
    consumer.close()


def result(futures: dict[Any, Future[Any]]) -> Any:
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def refusal(futures: dict[Any, Future[Any]]) -> KafkaError:
    with pytest.raises(KafkaException) as caught:
        result(futures)
    error: KafkaError = caught.value.args[0]
    return error


def described(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    entries: dict[str, ConfigEntry] = result(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
    return entries


def change(admin: AdminClient, topic: str, name: str, value: str | None, operation: AlterConfigOpType) -> None:
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    result(admin.incremental_alter_configs([resource]))


def test_create_describe_and_list(admin: AdminClient, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 3, 1, config={"retention.ms": "12345"})]))
    description = result(admin.describe_topics(TopicCollection([topic])))
    assert [partition.id for partition in description.partitions] == [0, 1, 2]
    assert all(partition.leader is not None and len(partition.isr) == 1 for partition in description.partitions)
    assert topic in admin.list_topics(timeout=TIMEOUT_S).topics
    assert described(admin, topic)["retention.ms"].value == "12345"


def test_create_refusals(admin: AdminClient, new_topic: Callable[[str], str]) -> None:
    topic = new_topic("topic")
    result(admin.create_topics([NewTopic(topic, 1, 1)]))
    cases = {
        KafkaError.TOPIC_ALREADY_EXISTS: NewTopic(topic, 1, 1),
        KafkaError.TOPIC_EXCEPTION: NewTopic("no spaces or ümlauts", 1, 1),
        KafkaError.INVALID_PARTITIONS: NewTopic(new_topic("none"), 0, 1),
        KafkaError.INVALID_REPLICATION_FACTOR: NewTopic(new_topic("replicas"), 1, 3),
        KafkaError.INVALID_CONFIG: NewTopic(new_topic("config"), 1, 1, config={"retention.ms": "soon"}),
    }
    for code, wanted in cases.items():
        error = refusal(admin.create_topics([wanted]))
        assert (error.code(), bool(error.str())) == (code, True), error


def test_validation_alone_creates_nothing(admin: AdminClient, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True))
    assert topic not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_producing_creates_the_topic(bootstrap: str, admin: AdminClient, topic: str) -> None:
    confluent_send(confluent_producer(bootstrap), topic, [Message(b"first")])
    assert len(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 1


def test_more_partitions(bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 1, 1)]))
    producer = confluent_producer(bootstrap)
    confluent_send(producer, topic, [Message(b"before")])
    result(admin.create_partitions([NewPartitions(topic, 5)]))
    assert len(result(admin.describe_topics(TopicCollection([topic]))).partitions) == 5
    confluent_send(confluent_producer(bootstrap), topic, [Message(b"after")], partition=4)
    consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 4, 0)])
    assert {message.value for message in confluent_take(consumer, 2)} == {b"before", b"after"}
    assert refusal(admin.create_partitions([NewPartitions(topic, 2)])).code() == KafkaError.INVALID_PARTITIONS


def test_many_partitions(bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 100, 1)]))
    producer = confluent_producer(bootstrap)
    for partition in range(100):
        producer.produce(topic, b"%d" % partition, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(100)])
    assert {message.value for message in confluent_take(consumer, 100)} == {b"%d" % n for n in range(100)}


def test_delete_and_create_again(bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str) -> None:
    for round_ in (b"one", b"two"):
        result(admin.create_topics([NewTopic(topic, 2, 1)]))
        (report,) = confluent_send(confluent_producer(bootstrap), topic, [Message(round_)])
        assert report.offset() == 0
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert confluent_take(consumer, 1)[0].value == round_
        consumer.unassign()
        result(admin.delete_topics([topic]))
        assert topic not in admin.list_topics(timeout=TIMEOUT_S).topics
    assert refusal(admin.delete_topics([topic])).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topic_settings(admin: AdminClient, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 1, 1, config={"segment.bytes": "1048576"})]))
    entries = described(admin, topic)
    assert entries["segment.bytes"].value == "1048576"
    assert entries["segment.bytes"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert entries["cleanup.policy"].value == "delete"
    assert entries["cleanup.policy"].source == ConfigSource.DEFAULT_CONFIG.value
    assert entries["cleanup.policy"].is_default

    change(admin, topic, "max.message.bytes", "5000", AlterConfigOpType.SET)
    change(admin, topic, "cleanup.policy", "compact", AlterConfigOpType.APPEND)
    wait_until(lambda: described(admin, topic)["cleanup.policy"].value == "delete,compact", "both policies are seen")
    entries = described(admin, topic)
    assert entries["max.message.bytes"].value == "5000"
    assert entries["segment.bytes"].value == "1048576"

    change(admin, topic, "max.message.bytes", None, AlterConfigOpType.DELETE)
    wait_until(lambda: described(admin, topic)["max.message.bytes"].value == "1048588", "the default is seen")


def test_settings_take_effect_without_a_restart(bootstrap: str, admin: AdminClient, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 1, 1)]))
    producer = confluent_producer(bootstrap)

    def refused() -> bool:
        try:
            confluent_send(producer, topic, [Message(bytes(9000))])
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE)
        return False

    assert not refused()
    change(admin, topic, "max.message.bytes", "5000", AlterConfigOpType.SET)
    wait_until(refused, "the new limit holds")
    change(admin, topic, "max.message.bytes", None, AlterConfigOpType.DELETE)
    wait_until(lambda: not refused(), "the default limit holds again")


def test_refused_settings_change_nothing(admin: AdminClient, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 1, 1)]))
    before = described(admin, topic)["retention.ms"].value
    for name, value in (("retention.ms", "soon"), ("no.such.setting", "1")):
        with pytest.raises(KafkaException) as caught:
            change(admin, topic, name, value, AlterConfigOpType.SET)
        assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG
    assert described(admin, topic)["retention.ms"].value == before


def test_broker_settings(admin: AdminClient) -> None:
    node = admin.list_topics(timeout=TIMEOUT_S).brokers.popitem()[0]
    entries = result(admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node))]))
    assert entries["node.id"].value == str(node)
    assert entries["node.id"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert entries["num.partitions"].value == "1"


def test_delete_records(bootstrap: str, admin: AdminClient, consumer: Consumer, topic: str) -> None:
    result(admin.create_topics([NewTopic(topic, 1, 1)]))
    confluent_send(confluent_producer(bootstrap), topic, [Message(b"%d" % n) for n in range(20)])
    assert result(admin.delete_records([TopicPartition(topic, 0, 15)])).low_watermark == 15
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S) == (15, 20)
    consumer.assign([TopicPartition(topic, 0, -2)])
    assert [message.offset for message in confluent_take(consumer, 5)] == list(range(15, 20))
    assert refusal(admin.delete_records([TopicPartition(topic, 0, 21)])).code() == KafkaError.OFFSET_OUT_OF_RANGE
    assert result(admin.delete_records([TopicPartition(topic, 0, -1)])).low_watermark == 20


def test_list_offsets(bootstrap: str, admin: AdminClient, connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    stamps = (1000, 5000, 3000)  # the greatest in the middle
    for stamp in stamps:
        confluent_send(confluent_producer(bootstrap), topic, [Message(b"v", timestamp=1_700_000_000_000 + stamp)])
    partition = TopicPartition(topic, 0)
    cases = (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 3),
        (OffsetSpec.max_timestamp(), 1),
        (OffsetSpec.for_timestamp(1_700_000_002_000), 1),
    )
    for spec, offset in cases:
        assert result(admin.list_offsets({partition: spec})).offset == offset, spec


def test_describe_cluster(bootstrap: str, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(TIMEOUT_S)
    assert len(cluster.cluster_id) == 22
    (node,) = cluster.nodes
    assert f"{node.host}:{node.port}" == bootstrap
    assert cluster.controller.id == node.id
    assert admin.list_topics(timeout=TIMEOUT_S).cluster_id == cluster.cluster_id
