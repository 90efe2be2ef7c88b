"""Metadata in versions with different fields."""

from types import SimpleNamespace
from typing import Any

import pytest
from steps import finished

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import BrokerEndpoint, PartitionRecord, RegisterBrokerRecord, TopicRecord
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.handlers.metadata import PARTITIONS_PER_STEP, MetadataHandler
from sskafka.servers.kafka.request import Request
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


@pytest.mark.parametrize(("version", "name"), [(12, None), (13, None)])
def test_an_unknown_topic_id_is_answered_without_a_name(version: int, name: str | None) -> None:
    view = ClusterView("cluster", ClusterImage, lambda: 1)
    handler = MetadataHandler(view, SimpleNamespace(automatic=False))  # type: ignore[arg-type]
    connection: Any = SimpleNamespace(authorizer=AllowAll(), principal="User:me", listener_name="PLAINTEXT")
    asked = MetadataRequest(topics=[MetadataRequestTopic(topic_id=bytes(range(16)), name=None)])
    request = Request(connection, version, 1, None, memoryview(b""), 0, 0, 3)
    answer = finished(handler.metadata(asked, request))
    (topic,) = decode(MetadataResponse, version, encode(answer, version)).topics
    assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_ID, name)


def test_names_beside_ids_are_left_out() -> None:
    view = ClusterView("cluster", ClusterImage, lambda: 1)
    handler = MetadataHandler(view, SimpleNamespace(automatic=False))  # type: ignore[arg-type]
    connection: Any = SimpleNamespace(authorizer=AllowAll(), principal="User:me", listener_name="PLAINTEXT")
    asked = [MetadataRequestTopic(name="bad/name"), MetadataRequestTopic(topic_id=bytes(range(16)), name=None)]
    request = Request(connection, 12, 1, None, memoryview(b""), 0, 0, 3)
    answer = finished(handler.metadata(MetadataRequest(topics=asked), request))
    assert [(topic.error_code, topic.topic_id) for topic in answer.topics] == [
        (ErrorCode.UNKNOWN_TOPIC_ID, bytes(range(16)))
    ]


def test_rights_on_a_bad_name_are_told_when_asked_for() -> None:
    view = ClusterView("cluster", ClusterImage, lambda: 1)
    handler = MetadataHandler(view, SimpleNamespace(automatic=False))  # type: ignore[arg-type]
    connection: Any = SimpleNamespace(authorizer=AllowAll(), principal="User:me", listener_name="PLAINTEXT")
    request = Request(connection, 11, 1, None, memoryview(b""), 0, 0, 3)
    for is_asked, rights in ((True, 3576), (False, -(2**31))):
        asked = MetadataRequest([MetadataRequestTopic(name="bad/name")], include_topic_authorized_operations=is_asked)
        (topic,) = finished(handler.metadata(asked, request)).topics
        assert (topic.error_code, topic.topic_authorized_operations) == (ErrorCode.INVALID_TOPIC_EXCEPTION, rights)


@pytest.mark.parametrize("topics", [None, [MetadataRequestTopic(name="wide")]])
def test_a_topic_with_many_partitions_is_described_in_steps(topics: list[MetadataRequestTopic] | None) -> None:
    """10,000 partitions in one step took 250 ms of CPU time, and all other clients waited."""
    image, delta = ClusterImage(), MetadataDelta()
    image.replay(TopicRecord("wide", bytes(16)), delta)
    for index in range(1000):
        image.replay(PartitionRecord(index, bytes(16), [1], [1], leader=1), delta)
    view = ClusterView("cluster", lambda: image, lambda: 1)
    handler = MetadataHandler(view, SimpleNamespace(automatic=False))  # type: ignore[arg-type]
    connection: Any = SimpleNamespace(authorizer=AllowAll(), principal="User:me", listener_name="PLAINTEXT")
    request = Request(connection, 11, 1, None, memoryview(b""), 0, 0, 3)
    steps = handler.metadata(MetadataRequest(topics), request)
    assert sum(1 for _ in steps) >= 1000 // PARTITIONS_PER_STEP
    (topic,) = finished(handler.metadata(MetadataRequest(topics), request)).topics
    assert [partition.partition_index for partition in topic.partitions] == list(range(1000))


def test_replicas_are_offline_as_soon_as_an_image_says_so() -> None:
    def image(*fenced: int) -> ClusterImage:
        image, delta = ClusterImage(), MetadataDelta()
        for broker_id in (1, 2):
            endpoint = BrokerEndpoint("PLAINTEXT", "localhost", 9092, 0)
            image.replay(RegisterBrokerRecord(broker_id, end_points=[endpoint], fenced=broker_id in fenced), delta)
        image.replay(TopicRecord("topic", bytes(16)), delta)
        image.replay(PartitionRecord(0, bytes(16), [1, 2, 3], [1], leader=1), delta)
        return image

    published = image()
    view = ClusterView("cluster", lambda: published, lambda: 1)
    partition = published.topics_by_name["topic"].partitions[0]
    assert view.offline_replicas(partition, "PLAINTEXT") == [3]
    assert view.offline_replicas(partition, "OTHER") == [1, 2, 3]
    published = image(2)
    assert view.offline_replicas(partition, "PLAINTEXT") == [2, 3]
    assert view.has_listener(2, "PLAINTEXT")
    assert not view.has_listener(2, "OTHER")
