"""The control plane for request handlers: called on its own event loop, or from the data loop in another thread."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sskafka.client.connection import Address
from sskafka.controller.control_plane import ControlPlane
from sskafka.controller.link import ControllerLink
from sskafka.metadata.acls.binding import AclBinding
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import Caller
from sskafka.model.errors import ErrorCode
from sskafka.quorum.committed_metadata import Listener
from sskafka.quorum.metadata_feed import MetadataFeed
from sskafka.quorum.raft_messages import WireRequest
from sskafka.runtime.control_thread import ControlThread
from sskafka.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from sskafka.wire.messages.create_delegation_token import CreateDelegationTokenResponse
from sskafka.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from sskafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from sskafka.wire.messages.delete_acls import DeleteAclsResponse
from sskafka.wire.messages.delete_topics import DeleteTopicsResponse
from sskafka.wire.schema import Message

OWN_CHANGE_TIMEOUT_S = 1.0


class DirectControl:
    """For handlers that run on the control loop."""

    def __init__(self, plane: ControlPlane, link: ControllerLink) -> None:
        self._plane = plane
        self._link = link

    @property
    def image(self) -> ClusterImage:
        return self._plane.committed.image

    @property
    def voter_addresses(self) -> Mapping[int, Address]:
        return self._plane.addresses

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` at once with all metadata, and then after every change."""
        self._plane.committed.subscribe(listener)

    async def ask(self, request: Message, timeout_ms: int, caller: Caller | None = None) -> Any:
        """Return the answer of the active controller, on whichever node it is."""
        return await self._link.ask(request, timeout_ms, caller)

    async def decide(self, request: Message, caller: Caller | None = None) -> Any:
        """Return the answer of this node's controller; KafkaError NOT_CONTROLLER unless it is the active one."""
        return await self._plane.decide(request, caller)

    async def answer(self, request: WireRequest) -> Message:
        """Return the answer of this node's part of the quorum."""
        return await self._plane.answer(request)


class ControlClient:
    """The same for handlers on the data loop: calls run on the control loop, and answers return to the data loop."""

    def __init__(self, thread: ControlThread, direct: DirectControl, feed: MetadataFeed) -> None:
        self._thread = thread
        self._direct = direct
        self._feed = feed

    @property
    def image(self) -> ClusterImage:
        """The image that this broker has applied."""
        return self._feed.image

    async def ask(self, request: Message, timeout_ms: int, caller: Caller | None = None) -> Any:
        answer = await self._thread.call(self._direct.ask(request, timeout_ms, caller))
        with suppress(TimeoutError):
            async with asyncio.timeout(OWN_CHANGE_TIMEOUT_S):
                await self._feed.until(lambda image: shows(image, request, answer))
        return answer

    async def decide(self, request: Message, caller: Caller | None = None) -> Any:
        return await self._thread.call(self._direct.decide(request, caller))

    async def answer(self, request: WireRequest) -> Message:
        return await self._thread.call(self._direct.answer(request))


def shows(image: ClusterImage, request: Message, response: Message) -> bool:
    """Return whether the image contains the change that the response acknowledges.

    The controller answers when a change is committed. The broker that forwarded the request replays the change a moment
    later. It waits for that before it answers its client, which may ask the same broker about the topic next."""
    match request, response:
        case _, CreateDelegationTokenResponse(error_code=ErrorCode.NONE, token_id=token_id):
            return token_id in image.delegation_tokens
        case CreateTopicsRequest(validate_only=False), CreateTopicsResponse(topics=topics):
            created = [topic.topic_id for topic in topics if topic.error_code == ErrorCode.NONE]
            return all(topic_id in image.topics_by_id for topic_id in created)
        case _, DeleteTopicsResponse(responses=topics):
            deleted = [topic.topic_id for topic in topics if topic.error_code == ErrorCode.NONE]
            return not any(topic_id in image.topics_by_id for topic_id in deleted)
        case CreatePartitionsRequest(validate_only=False), CreatePartitionsResponse(results=results):
            grown = {result.name for result in results if result.error_code == ErrorCode.NONE}
            return all(_has(image, topic.name, topic.count) for topic in request.topics if topic.name in grown)
        case CreateAclsRequest(creations=requested), CreateAclsResponse(results=outcomes):
            created_acls = {
                AclBinding(
                    one.resource_type,
                    one.resource_name,
                    one.resource_pattern_type,
                    one.principal,
                    one.host,
                    one.operation,
                    one.permission_type,
                )
                for one, outcome in zip(requested, outcomes, strict=True)
                if outcome.error_code == ErrorCode.NONE
            }
            return created_acls <= _acls(image)
        case _, DeleteAclsResponse(filter_results=deletions):
            deleted_acls = {AclBinding.of(acl) for deletion in deletions for acl in deletion.matching_acls}
            return deleted_acls.isdisjoint(_acls(image))
        case _:
            return True


def _acls(image: ClusterImage) -> set[AclBinding]:
    return {AclBinding.of(record) for record in image.access_control.values()}


def _has(image: ClusterImage, name: str, partitions: int) -> bool:
    """Return whether the topic has that many partitions. True for a topic that was deleted in the meantime."""
    topic = image.topics_by_name.get(name)
    return topic is None or len(topic.partitions) >= partitions
