"""Metadata: the brokers of the cluster, its topics, and the leaders of their partitions."""

from collections.abc import Generator, Iterable

from sskafka.metadata.image import TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import INTERNAL_TOPICS, ZERO_UUID, topic_name_problem
from sskafka.raft.voters import NO_NODE
from sskafka.servers.kafka.authorization import AUTHORIZED_OPERATIONS_OMITTED
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.request import Request
from sskafka.servers.kafka.topic_creation import TopicCreation
from sskafka.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ALL_TOPICS_IF_EMPTY = 0  # in version 0 an empty list means every topic
LISTENER_NOT_FOUND_FROM = 6
PARTITIONS_PER_STEP = 100
IDS_FROM = 12  # requests have topic ids from version 10 on, but brokers support them from 12 on


class MetadataHandler:
    def __init__(self, view: ClusterView, creation: TopicCreation) -> None:
        self._view = view
        self._creation = creation

    def metadata(self, message: MetadataRequest, request: Request) -> Generator[None, None, MetadataResponse]:
        """Yield between topics and between parts of large ones: a client may ask for all of them."""
        if request.version < IDS_FROM and any(_is_by_id(requested) for requested in message.topics or ()):
            return _ids_refused(message.topics or [])
        topics: list[MetadataResponseTopic] = []
        if message.topics is None or (not message.topics and request.version == ALL_TOPICS_IF_EMPTY):
            for topic in tuple(self._view.image.topics_by_name.values()):
                if request.may_see(ResourceType.TOPIC, topic.name):
                    topics.append((yield from self._describe(topic, message, request)))
                yield
        else:
            requested_topics = _by_id_or_by_name(message.topics)
            refused = yield from self._create_missing(requested_topics, message, request)
            for requested in _once_each(requested_topics):
                topics.append((yield from self._requested_topic(requested, message, request, refused)))
                yield
        view = self._view
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(broker.broker_id, broker.host, broker.port, broker.rack)
                for broker in view.brokers(request.listener_name)
            ],
            cluster_id=view.cluster_id,
            controller_id=view.controller_id,
            topics=topics,
            cluster_authorized_operations=self._cluster_rights(message, request),
        )

    def _cluster_rights(self, message: MetadataRequest, request: Request) -> int:
        return (
            request.rights_on_cluster()
            if message.include_cluster_authorized_operations
            else AUTHORIZED_OPERATIONS_OMITTED
        )

    def _create_missing(
        self, topics: list[MetadataRequestTopic], message: MetadataRequest, request: Request
    ) -> Generator[None, None, set[str]]:
        """Create unknown topics if auto.create.topics.enable and the request allow it.

        Return the topics that the client may describe, but not create."""
        if not message.allow_auto_topic_creation or not self._creation.automatic:
            return set()
        known = self._view.image.topics_by_name
        missing: dict[str, None] = {}
        for requested in topics:
            if (
                requested.topic_id == ZERO_UUID
                and requested.name
                and requested.name not in known
                and topic_name_problem(requested.name) is None
                and request.may_see(ResourceType.TOPIC, requested.name)
            ):
                missing[requested.name] = None
            yield
        if not missing:
            return set()
        may_all = request.may_see(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CREATE)
        allowed: list[str] = []
        refused: set[str] = set()
        for name in missing:
            if may_all or request.may_on_topic(AclOperation.CREATE, name):
                allowed.append(name)
            else:
                refused.add(name)
            yield
        if allowed:
            self._creation.create_soon(allowed)
        return refused

    def _requested_topic(
        self, requested: MetadataRequestTopic, message: MetadataRequest, request: Request, refused: set[str]
    ) -> Generator[None, None, MetadataResponseTopic]:
        """`refused`: topics that the client may not create."""
        image = self._view.image
        if requested.name is None or requested.topic_id != ZERO_UUID:
            topic = image.topics_by_id.get(requested.topic_id)
            if topic is None:
                return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, requested.topic_id)
            if not request.may_on_topic(AclOperation.DESCRIBE, topic.name):
                return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, requested.topic_id)
            return (yield from self._describe(topic, message, request))
        if requested.name in refused or not request.may_on_topic(AclOperation.DESCRIBE, requested.name):
            return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, requested.name)
        if topic_name_problem(requested.name) is not None:
            return MetadataResponseTopic(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                requested.name,
                topic_authorized_operations=self._topic_rights(requested.name, message, request),
            )
        topic = image.topics_by_name.get(requested.name)
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return MetadataResponseTopic(
                unknown,
                requested.name,
                is_internal=requested.name in INTERNAL_TOPICS,
                topic_authorized_operations=self._topic_rights(requested.name, message, request),
            )
        return (yield from self._describe(topic, message, request))

    def _describe(
        self, topic: TopicImage, message: MetadataRequest, request: Request
    ) -> Generator[None, None, MetadataResponseTopic]:
        partitions: list[MetadataResponsePartition] = []
        for index in sorted(topic.partitions):
            partitions.append(self._describe_partition(index, topic.partitions[index], request))
            if not len(partitions) % PARTITIONS_PER_STEP:
                yield
        return MetadataResponseTopic(
            ErrorCode.NONE,
            topic.name,
            topic.topic_id,
            topic.name in INTERNAL_TOPICS,
            partitions,
            self._topic_rights(topic.name, message, request),
        )

    def _topic_rights(self, name: str, message: MetadataRequest, request: Request) -> int:
        return (
            request.rights_on_topic(name)
            if message.include_topic_authorized_operations
            else AUTHORIZED_OPERATIONS_OMITTED
        )

    def _describe_partition(self, index: int, partition: PartitionImage, request: Request) -> MetadataResponsePartition:
        """Return LISTENER_NOT_FOUND if the leader does not have the listener that the client uses."""
        name, error, leader = request.listener_name, ErrorCode.NONE, partition.leader
        if not partition.has_leader:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        elif not self._view.has_listener(leader, name):
            knows_listener_error = request.version >= LISTENER_NOT_FOUND_FROM
            error = ErrorCode.LISTENER_NOT_FOUND if knows_listener_error else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_NODE
        return MetadataResponsePartition(
            error,
            index,
            leader,
            partition.leader_epoch,
            list(partition.replicas),
            list(partition.isr),
            self._view.offline_replicas(partition, name),
        )


def _is_by_id(requested: MetadataRequestTopic) -> bool:
    return requested.name is None or requested.topic_id != ZERO_UUID


def _by_id_or_by_name(requested: list[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Return the topics with an id if there are any: Apache Kafka then ignores topics that have only a name."""
    return [topic for topic in requested if topic.topic_id != ZERO_UUID] or requested


def _ids_refused(requested: list[MetadataRequestTopic]) -> MetadataResponse:
    topics = [MetadataResponseTopic(ErrorCode.INVALID_REQUEST, topic.name or "", topic.topic_id) for topic in requested]
    return MetadataResponse(topics=topics)


def _once_each(requested: list[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """Describe each topic once, even if the request names it twice."""
    return {(topic.name, topic.topic_id): topic for topic in requested}.values()
