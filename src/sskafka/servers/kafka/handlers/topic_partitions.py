"""DescribeTopicPartitions: topics in the order of their names, cut into pages of partitions by a cursor.

limit 3    a-0 a-1 a-2 | a-3 b-0 b-1 | b-2        next cursors: (a, 3), (b, 2), none
"""

from collections.abc import Generator

from sskafka.metadata.image import TopicImage
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import INTERNAL_TOPICS, topic_name_problem
from sskafka.raft.voters import NO_NODE
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

PARTITIONS_PER_STEP = 100


class TopicPartitionsHandler:
    def __init__(self, view: ClusterView, page_partitions_max: int) -> None:
        self._view = view
        self._page_partitions_max = page_partitions_max

    def describe(
        self, message: DescribeTopicPartitionsRequest, request: Request
    ) -> Generator[None, None, DescribeTopicPartitionsResponse]:
        if message.cursor is not None and not _is_valid(message.cursor, message):
            refused = [DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, t.name) for t in message.topics]
            return DescribeTopicPartitionsResponse(topics=refused)
        response = DescribeTopicPartitionsResponse()
        room = max(1, min(message.response_partition_limit, self._page_partitions_max))
        for name in self._names(message, request):
            if room == 0:
                response.next_cursor = Cursor(name, 0)
                break
            start = message.cursor.partition_index if message.cursor and message.cursor.topic_name == name else 0
            yield
            described, next_index = yield from self._topic(request, name, start, room)
            response.topics.append(described)
            room -= len(described.partitions)
            if next_index is not None:
                response.next_cursor = Cursor(name, next_index)
                break
        return response

    def _names(self, message: DescribeTopicPartitionsRequest, request: Request) -> list[str]:
        """Return the requested topics, or all that the client may describe, from the cursor on."""
        requested = {topic.name for topic in message.topics}
        if not requested:
            requested = {name for name in self._view.image.topics_by_name if request.may_see(ResourceType.TOPIC, name)}
        first = message.cursor.topic_name if message.cursor else ""
        return sorted(name for name in requested if name >= first)

    def _topic(
        self, request: Request, name: str, start: int, room: int
    ) -> Generator[None, None, tuple[DescribeTopicPartitionsResponseTopic, int | None]]:
        """Return the topic with the partitions that fit into the page, and the first partition that does not fit."""
        topic = self._view.image.topics_by_name.get(name)
        if not request.may_on_topic(AclOperation.DESCRIBE, name):
            return DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name), None
        if topic is None:
            is_named = topic_name_problem(name) is None
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_named else ErrorCode.INVALID_TOPIC_EXCEPTION
            unknown = DescribeTopicPartitionsResponseTopic(code, name, is_internal=name in INTERNAL_TOPICS)
            unknown.topic_authorized_operations = request.rights_on_topic(name)
            return unknown, None
        indexes = [index for index in sorted(topic.partitions) if index >= start]
        partitions: list[DescribeTopicPartitionsResponsePartition] = []
        for index in indexes[:room]:
            partitions.append(self._partition(topic, index, request.listener_name))
            if not len(partitions) % PARTITIONS_PER_STEP:
                yield
        described = DescribeTopicPartitionsResponseTopic(
            ErrorCode.NONE,
            name,
            topic.topic_id,
            name in INTERNAL_TOPICS,
            partitions,
            request.rights_on_topic(name),
        )
        return described, indexes[room] if len(indexes) > room else None

    def _partition(self, topic: TopicImage, index: int, listener_name: str) -> DescribeTopicPartitionsResponsePartition:
        partition = topic.partitions[index]
        return DescribeTopicPartitionsResponsePartition(
            ErrorCode.NONE if partition.has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
            index,
            partition.leader if self._view.has_listener(partition.leader, listener_name) else NO_NODE,
            partition.leader_epoch,
            list(partition.replicas),
            list(partition.isr),
            list(partition.eligible_leader_replicas),
            list(partition.last_known_eligible_leader_replicas),
            self._view.offline_replicas(partition, listener_name),
        )


def _is_valid(cursor: Cursor, message: DescribeTopicPartitionsRequest) -> bool:
    """Return whether the cursor points to a topic of the request. A request for all topics may start anywhere."""
    is_named = not message.topics or any(topic.name == cursor.topic_name for topic in message.topics)
    return is_named and cursor.partition_index >= 0
