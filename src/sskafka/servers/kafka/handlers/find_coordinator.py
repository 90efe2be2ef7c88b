"""FindCoordinator: the broker that leads the partition with the state of a group or a transactional id.

The first request for a coordinator creates the internal topic.
"""

from sskafka.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, partition_of
from sskafka.metadata.image import TopicImage
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.request import Request
from sskafka.servers.kafka.topic_creation import InternalTopics
from sskafka.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1
BATCHED_FROM = 4
NOBODY = -1
NO_ERROR = "NONE"
"""The error message that Apache Kafka sends with a response without error."""

_TOPICS = {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE}
_RESOURCES = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
_REFUSALS = {
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class FindCoordinatorHandler:
    def __init__(self, view: ClusterView, topics: InternalTopics) -> None:
        self._view = view
        self._topics = topics

    async def find_coordinator(self, message: FindCoordinatorRequest, request: Request) -> FindCoordinatorResponse:
        keys = message.coordinator_keys if request.version >= BATCHED_FROM else [message.key]
        found = [await self._find(key, message.key_type, request) for key in keys]
        if request.version >= BATCHED_FROM:
            return FindCoordinatorResponse(coordinators=found)
        only = found[0]
        return FindCoordinatorResponse(
            error_code=only.error_code,
            error_message=only.error_message if only.error_code else NO_ERROR,
            node_id=only.node_id,
            host=only.host,
            port=only.port,
        )

    async def _find(self, key: str, key_type: int, request: Request) -> Coordinator:
        name = _TOPICS.get(key_type)
        if name is None:
            return _nobody(key, ErrorCode.INVALID_REQUEST, f"coordinators of type {key_type} are not served")
        if not request.may(AclOperation.DESCRIBE, _RESOURCES[key_type], key):
            return _nobody(key, _REFUSALS[key_type])
        topic = await self._topics.find_or_create(name)
        if topic is None:
            return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} could not be created")
        return self._leader(key, topic, request.listener_name)

    def _leader(self, key: str, topic: TopicImage, listener_name: str) -> Coordinator:
        leader_id = topic.partitions[partition_of(key, len(topic.partitions))].leader
        for broker in self._view.brokers(listener_name):
            if broker.broker_id == leader_id:
                return Coordinator(key, leader_id, broker.host, broker.port, ErrorCode.NONE, "")
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _nobody(key: str, error: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(key, NOBODY, "", NOBODY, error, message)
