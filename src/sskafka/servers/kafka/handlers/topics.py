"""CreateTopics, DeleteTopics and CreatePartitions. The controller decides; the response follows the commit."""

import asyncio
from typing import Any

from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.servers.kafka.authorization import divided
from sskafka.servers.kafka.client_quotas import UNLIMITED_MUTATIONS, MutationQuota
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from sskafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sskafka.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

OMITTED = -1
CREATE_STRICT_FROM, DELETE_STRICT_FROM, GROW_STRICT_FROM = 6, 5, 3
TOPICS_PER_TURN = 500
TOO_MANY = "The throttling quota has been exceeded."


class TopicHandlers:
    def __init__(
        self, controller: Controller, mutations: MutationQuota = UNLIMITED_MUTATIONS, partitions_default: int = 1
    ) -> None:
        """`partitions_default`: num.partitions."""
        self._controller = controller
        self._mutations = mutations
        self._partitions_default = partitions_default

    async def create_topics(self, message: CreateTopicsRequest, request: Request) -> CreateTopicsResponse:
        may_all = request.may_see(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CREATE)
        allowed, refused = divided(
            message.topics, lambda topic: may_all or request.may_on_topic(AclOperation.CREATE, topic.name)
        )
        throttle = _Throttle(self._mutations, request, CREATE_STRICT_FROM, is_counted=not message.validate_only)
        allowed, late = divided(allowed, lambda topic: throttle.admits(self._new_partitions(topic)))
        message.topics = allowed
        response = await ask(
            self._controller,
            message,
            lambda code, text: CreateTopicsResponse(topics=[_not_created(topic, code, text) for topic in allowed]),
            request.caller,
        )
        for number, topic in enumerate(response.topics):
            if not request.may_see(ResourceType.TOPIC, topic.name, AclOperation.DESCRIBE_CONFIGS):
                _omit_configs(topic)
            if not number % TOPICS_PER_TURN:
                await asyncio.sleep(0)
        response.topics += [_not_created(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused]
        response.topics += [_not_created(topic, ErrorCode.THROTTLING_QUOTA_EXCEEDED, TOO_MANY) for topic in late]
        throttle.finish(response)
        return response

    async def delete_topics(self, message: DeleteTopicsRequest, request: Request) -> DeleteTopicsResponse:
        wanted = message.topics or [DeleteTopicState(name=name) for name in message.topic_names]
        image = self._controller.image
        may_all = request.may_see(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.DELETE)
        allowed, refused = divided(wanted, lambda state: may_all or _may_delete(request, image, state))
        throttle = _Throttle(self._mutations, request, DELETE_STRICT_FROM)
        allowed, late = divided(allowed, lambda state: throttle.admits(_partitions_of(image, state)))
        message.topics, message.topic_names = allowed, []
        response = await ask(
            self._controller,
            message,
            lambda code, text: DeleteTopicsResponse(responses=[_not_deleted(state, code, text) for state in allowed]),
            request.caller,
        )
        response.responses += [_refused_deletion(request, image, state) for state in refused]
        response.responses += [_not_deleted(state, ErrorCode.THROTTLING_QUOTA_EXCEEDED, TOO_MANY) for state in late]
        throttle.finish(response)
        return response

    async def create_partitions(self, message: CreatePartitionsRequest, request: Request) -> CreatePartitionsResponse:
        allowed, refused = divided(message.topics, lambda topic: request.may_on_topic(AclOperation.ALTER, topic.name))
        image = self._controller.image
        throttle = _Throttle(self._mutations, request, GROW_STRICT_FROM, is_counted=not message.validate_only)
        allowed, late = divided(allowed, lambda topic: throttle.admits(_added_partitions(image, topic)))
        message.topics = allowed
        response = await ask(
            self._controller,
            message,
            lambda code, text: CreatePartitionsResponse(results=[_not_grown(topic, code, text) for topic in allowed]),
            request.caller,
        )
        response.results += [_not_grown(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused]
        response.results += [_not_grown(topic, ErrorCode.THROTTLING_QUOTA_EXCEEDED, TOO_MANY) for topic in late]
        throttle.finish(response)
        return response

    def _new_partitions(self, topic: CreatableTopic) -> int:
        """Return how many partitions would be created; none for a topic that exists."""
        if topic.name in self._controller.image.topics_by_name:
            return 0
        wanted = topic.num_partitions if topic.num_partitions > 0 else self._partitions_default
        return len(topic.assignments) or wanted


class _Throttle:
    """The throttling of one request by controller_mutation_rate: strict from some version on, permissive before."""

    def __init__(self, quota: MutationQuota, request: Request, strict_from: int, *, is_counted: bool = True) -> None:
        self._quota = quota
        self._request = request
        self._is_strict = request.version >= strict_from
        self._is_counted = is_counted and quota.is_limited
        self._wait_ms = 0

    def admits(self, mutations: int) -> bool:
        """Count created or deleted partitions. Return whether the client may make them now."""
        if not self._is_counted or mutations <= 0:
            return True
        wait_ms = self._quota.wait_ms(self._request.caller, mutations, is_strict=self._is_strict)
        self._wait_ms = max(self._wait_ms, wait_ms)
        return not (wait_ms and self._is_strict)

    def finish(self, response: Any) -> None:
        """Put the throttle time into the response, unless the controller has done so, and mute the client."""
        response.throttle_time_ms = max(response.throttle_time_ms, self._wait_ms)
        if response.throttle_time_ms:
            self._request.mute(response.throttle_time_ms)


def _not_created(topic: CreatableTopic, code: ErrorCode, text: str | None = None) -> CreatableTopicResult:
    return CreatableTopicResult(topic.name, error_code=code, error_message=text)


def _not_deleted(state: DeleteTopicState, code: ErrorCode, text: str | None = None) -> DeletableTopicResult:
    return DeletableTopicResult(state.name, state.topic_id, code, text)


def _not_grown(topic: CreatePartitionsTopic, code: ErrorCode, text: str | None = None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(topic.name, code, text)


def _omit_configs(topic: CreatableTopicResult) -> None:
    """Omit the configs of a created topic if the client may not describe them."""
    if topic.error_code == ErrorCode.NONE:
        topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic.num_partitions = topic.replication_factor = OMITTED
        topic.configs = []


def _may_delete(request: Request, image: ClusterImage, state: DeleteTopicState) -> bool:
    """Return whether the controller may be asked. It reports topics that do not exist to clients that may know."""
    name = _name_of(image, state)
    if name is None:
        return True  # no topic has this id, so the response reveals nothing
    if request.may_on_topic(AclOperation.DELETE, name):
        return True
    return name not in image.topics_by_name and request.may_see(ResourceType.TOPIC, name)


def _refused_deletion(request: Request, image: ClusterImage, state: DeleteTopicState) -> DeletableTopicResult:
    """Return the result without the name of a topic that the client named by its id and may not describe."""
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if state.topic_id == ZERO_UUID:
        return _not_deleted(state, code)
    name = _name_of(image, state)
    is_visible = name is not None and request.may_see(ResourceType.TOPIC, name)
    return DeletableTopicResult(name if is_visible else None, state.topic_id, code)


def _partitions_of(image: ClusterImage, state: DeleteTopicState) -> int:
    topic = image.topics_by_name.get(_name_of(image, state) or "")
    return len(topic.partitions) if topic else 0


def _added_partitions(image: ClusterImage, wanted: CreatePartitionsTopic) -> int:
    topic = image.topics_by_name.get(wanted.name)
    return max(0, wanted.count - len(topic.partitions)) if topic else 0


def _name_of(image: ClusterImage, state: DeleteTopicState) -> str | None:
    if state.topic_id == ZERO_UUID:
        return state.name or ""
    topic = image.topics_by_id.get(state.topic_id)
    return topic.name if topic else None
