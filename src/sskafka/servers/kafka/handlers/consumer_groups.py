"""Consumer groups (KIP-848): ConsumerGroupHeartbeat and ConsumerGroupDescribe."""

import asyncio
from collections.abc import Generator
from functools import partial
from typing import Any

from sskafka.coordination.completions import FutureCompletion
from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.groups.consumer_heartbeat import Heartbeat, TopicRights, read_long_fields
from sskafka.groups.group import Group
from sskafka.metadata.features import GROUP_VERSION
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.computation import Computation
from sskafka.model.coordination import Completion
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.completions import completing_api
from sskafka.servers.kafka.handlers.consumer_group_descriptions import Describer, GroupSnapshot, snapshot_of
from sskafka.servers.kafka.handlers.groups import client_of
from sskafka.servers.kafka.request import Request
from sskafka.servers.kafka.request_pieces import RESPONSE_BYTES_MAX
from sskafka.wire.apis import ApiKey
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from sskafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

HIDES_TOPICS = "The group has described topic(s) that the client is not authorized to describe."
NAMES_PER_STEP = 100
SERVED_FROM = 1
"""Level of the feature group.version."""


class ConsumerGroupHandlers:
    def __init__(self, groups: GroupCoordinator, view: ClusterView, is_configured: bool) -> None:
        """`is_configured`: whether group.coordinator.rebalance.protocols contains `consumer`."""
        self._groups = groups
        self._view = view
        self._is_configured = is_configured
        self.handle_heartbeat = completing_api(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, self.heartbeat, _heartbeat_refused, prepare=self._prepared
        )

    @property
    def _is_served(self) -> bool:
        return self._is_configured and self._view.image.features.get(GROUP_VERSION, 0) >= SERVED_FROM

    def _prepared(self, message: ConsumerGroupHeartbeatRequest, request: Request) -> Computation[Heartbeat | ErrorCode]:
        """Check and read the request, which may list thousands of topics."""
        if not self._is_served:
            return ErrorCode.UNSUPPORTED_VERSION
        if not request.may_on_group(AclOperation.READ, message.group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        for number, name in enumerate(message.subscribed_topic_names or (), 1):
            if not request.may_on_topic(AclOperation.DESCRIBE, name):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if not number % NAMES_PER_STEP:
                yield
        rights = None
        if request.connection.authorizer.is_configured:
            rights = TopicRights(partial(request.may_see, ResourceType.TOPIC), self._view.image.access_control)
        long_fields = yield from read_long_fields(message)
        return Heartbeat(message, request.version, client_of(request), rights, long_fields)

    def heartbeat(self, heartbeat: Heartbeat | ErrorCode, request: Request, completion: Completion) -> None:
        if isinstance(heartbeat, Heartbeat):
            self._groups.consumer_heartbeat(heartbeat, completion)
        else:
            completion.refuse(heartbeat)

    def describe(
        self, message: ConsumerGroupDescribeRequest, request: Request
    ) -> "Generator[asyncio.Future[Any] | None, None, ConsumerGroupDescribeResponse]":
        if not self._is_served:
            return _describe_refused(message, ErrorCode.UNSUPPORTED_VERSION)
        describer = Describer(self._groups.topics, request.version)
        response = ConsumerGroupDescribeResponse()
        for name in message.group_ids:
            response.groups.append((yield from self._described(name, message, request, describer)))
            if describer.size_bytes > RESPONSE_BYTES_MAX:
                raise MalformedMessageError(f"the response would have more than {RESPONSE_BYTES_MAX} bytes")
            yield None
        return response

    def _described(
        self, name: str, message: ConsumerGroupDescribeRequest, request: Request, describer: Describer
    ) -> "Generator[asyncio.Future[Any] | None, None, DescribedGroup]":
        if not name:
            return DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID, group_id=name)
        if not request.may_on_group(AclOperation.DESCRIBE, name):
            return DescribedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=name)
        completion = FutureCompletion()
        self._groups.describe(name, self._snapshot, completion)
        if not completion.future.done():
            yield completion.future
        try:
            found: GroupSnapshot | DescribedGroup = completion.future.result()
        except KafkaError as error:
            return DescribedGroup(error_code=error.code, group_id=name)
        if isinstance(found, DescribedGroup):
            return found
        if request.connection.authorizer.is_configured:
            for number, topic in enumerate((yield from describer.topics_of(found)), 1):
                if not request.may_see(ResourceType.TOPIC, topic):
                    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDES_TOPICS, name)
                if not number % NAMES_PER_STEP:
                    yield None
        described = yield from describer.describe(found)
        if message.include_authorized_operations:
            described.authorized_operations = request.rights_on_group(name)
        return described

    def _snapshot(self, group_id: str, group: Group | None) -> GroupSnapshot | DescribedGroup:
        return snapshot_of(group_id, group, self._groups.default_assignor)


def _heartbeat_refused(_: Heartbeat | ErrorCode, error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error)


def _describe_refused(message: ConsumerGroupDescribeRequest, error: ErrorCode) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(error_code=error, group_id=name) for name in message.group_ids]
    )
