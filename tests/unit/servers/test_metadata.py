"""Metadata in versions with different fields."""

from types import SimpleNamespace
from typing import Any

import pytest
from steps import finished

from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.handlers.metadata import MetadataHandler
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
