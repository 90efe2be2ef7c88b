"""Pages of DescribeTopicPartitions, without topics that the client may not describe."""

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

from steps import finished

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import PartitionRecord, TopicRecord
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.handlers.topic_partitions import PARTITIONS_PER_STEP, TopicPartitionsHandler
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)


class AllButSecrets:
    def allows(self, context: object, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return name != "secret"

    would_allow = allows


def handler(*names: str, partitions: int = 3) -> TopicPartitionsHandler:
    image, delta = ClusterImage(), MetadataDelta()
    for name in names:
        topic_id = name.encode().ljust(16)
        image.replay(TopicRecord(name, topic_id), delta)
        for index in range(partitions):
            image.replay(PartitionRecord(index, topic_id, [1], [1], leader=1), delta)
    return TopicPartitionsHandler(ClusterView("cluster", lambda: image, lambda: 1), 2000)


def steps(handler: TopicPartitionsHandler, **fields: Any) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    connection: Any = SimpleNamespace(authorizer=AllButSecrets(), principal="User:me", listener_name="PLAINTEXT")
    request = Request(connection, 0, 1, None, memoryview(b""), 0, 0, 75)
    return handler.describe(DescribeTopicPartitionsRequest(**fields), request)


def describe(handler: TopicPartitionsHandler, **fields: Any) -> DescribeTopicPartitionsResponse:
    return finished(steps(handler, **fields))


def test_pages_go_on_at_the_cursor() -> None:
    topics, cursor, seen = handler("a", "b"), None, []
    for _ in range(3):
        page = describe(topics, response_partition_limit=2, cursor=cursor)
        seen += [(topic.name, partition.partition_index) for topic in page.topics for partition in topic.partitions]
        cursor = page.next_cursor
    assert seen == [(name, index) for name in "ab" for index in range(3)]
    assert cursor is None
    assert describe(topics, response_partition_limit=3).next_cursor == Cursor("b", 0)


def test_whoever_asks_for_all_topics_does_not_learn_of_those_that_are_none_of_his_business() -> None:
    topics = handler("a", "secret")
    assert [topic.name for topic in describe(topics).topics] == ["a"]
    (refused,) = describe(topics, topics=[TopicRequest("secret")]).topics
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_cursor_points_to_one_of_the_topics_that_are_named() -> None:
    topics = handler("a", "b")
    named = [TopicRequest("a"), TopicRequest("c")]
    for cursor in (Cursor("b", 0), Cursor("", 0), Cursor("a", -1)):
        refused = describe(topics, topics=named, cursor=cursor).topics
        assert [(topic.name, topic.error_code) for topic in refused] == [
            ("a", ErrorCode.INVALID_REQUEST),
            ("c", ErrorCode.INVALID_REQUEST),
        ]
    (found,) = describe(topics, topics=[TopicRequest("a"), TopicRequest("b")], cursor=Cursor("b", 1)).topics
    assert (found.name, [partition.partition_index for partition in found.partitions]) == ("b", [1, 2])
    assert [topic.name for topic in describe(topics, cursor=Cursor("aa", 0)).topics] == ["b"], "of all topics"


def test_a_page_of_many_partitions_is_described_in_steps() -> None:
    wide = handler("wide", partitions=1000)
    assert sum(1 for _ in steps(wide)) >= 1000 // PARTITIONS_PER_STEP
