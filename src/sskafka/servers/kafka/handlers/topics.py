"""CreateTopics, DeleteTopics and CreatePartitions. The controller decides; the response follows the commit."""

from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.servers.kafka.authorization import divided
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


class TopicHandlers:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def create_topics(self, message: CreateTopicsRequest, request: Request) -> CreateTopicsResponse:
        allowed, refused = divided(message.topics, lambda topic: _may(request, AclOperation.CREATE, topic.name))
        message.topics = allowed
        response = await ask(
            self._controller,
            message,
            lambda code, text: CreateTopicsResponse(topics=[_not_created(topic, code, text) for topic in allowed]),
        )
        response.topics += [_not_created(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused]
        return response

    async def delete_topics(self, message: DeleteTopicsRequest, request: Request) -> DeleteTopicsResponse:
        wanted = message.topics or [DeleteTopicState(name=name) for name in message.topic_names]
        image = self._controller.image
        allowed, refused = divided(wanted, lambda state: _may(request, AclOperation.DELETE, _name_of(image, state)))
        message.topics, message.topic_names = allowed, []
        response = await ask(
            self._controller,
            message,
            lambda code, text: DeleteTopicsResponse(responses=[_not_deleted(state, code, text) for state in allowed]),
        )
        response.responses += [_not_deleted(state, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for state in refused]
        return response

    async def create_partitions(self, message: CreatePartitionsRequest, request: Request) -> CreatePartitionsResponse:
        allowed, refused = divided(message.topics, lambda topic: _may(request, AclOperation.ALTER, topic.name))
        message.topics = allowed
        response = await ask(
            self._controller,
            message,
            lambda code, text: CreatePartitionsResponse(results=[_not_grown(topic, code, text) for topic in allowed]),
        )
        response.results += [_not_grown(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused]
        return response


def _not_created(topic: CreatableTopic, code: ErrorCode, text: str | None = None) -> CreatableTopicResult:
    return CreatableTopicResult(topic.name, error_code=code, error_message=text)


def _not_deleted(state: DeleteTopicState, code: ErrorCode, text: str | None = None) -> DeletableTopicResult:
    return DeletableTopicResult(state.name, state.topic_id, code, text)


def _not_grown(topic: CreatePartitionsTopic, code: ErrorCode, text: str | None = None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(topic.name, code, text)


def _may(request: Request, operation: AclOperation, topic: str) -> bool:
    return request.may_on_topic(operation, topic) or request.may_on_cluster(operation)


def _name_of(image: ClusterImage, state: DeleteTopicState) -> str:
    if state.topic_id == ZERO_UUID:
        return state.name or ""
    topic = image.topics_by_id.get(state.topic_id)
    return topic.name if topic else ""
