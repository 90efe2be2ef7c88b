"""Consumer groups (KIP-848): ConsumerGroupHeartbeat and ConsumerGroupDescribe."""

from functools import partial

from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.groups.assignors import Partitions
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.consumer_heartbeat import Heartbeat, TopicRights
from sskafka.groups.group import Group
from sskafka.groups.members import ConsumerMember
from sskafka.metadata.features import GROUP_VERSION
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.coordination import Completion
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.completions import Gathering, completing_api
from sskafka.servers.kafka.handlers.groups import allowed_on_group, client_of
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from sskafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
HIDES_TOPICS = "The group has described topic(s) that the client is not authorized to describe."
SERVED_FROM = 1
"""Level of the feature group.version."""


class ConsumerGroupHandlers:
    def __init__(self, groups: GroupCoordinator, view: ClusterView, is_configured: bool) -> None:
        """`is_configured`: whether group.coordinator.rebalance.protocols contains `consumer`."""
        self._groups = groups
        self._view = view
        self._is_configured = is_configured
        self.handle_heartbeat = completing_api(ApiKey.CONSUMER_GROUP_HEARTBEAT, self.heartbeat, _heartbeat_refused)
        self.handle_describe = completing_api(ApiKey.CONSUMER_GROUP_DESCRIBE, self.describe, _describe_refused)

    @property
    def _is_served(self) -> bool:
        return self._is_configured and self._view.image.features.get(GROUP_VERSION, 0) >= SERVED_FROM

    def heartbeat(self, message: ConsumerGroupHeartbeatRequest, request: Request, completion: Completion) -> None:
        if not self._is_served:
            completion.refuse(ErrorCode.UNSUPPORTED_VERSION)
            return
        if not allowed_on_group(request, AclOperation.READ, message.group_id, completion):
            return
        names = message.subscribed_topic_names or ()
        if not all(request.may_on_topic(AclOperation.DESCRIBE, name) for name in names):
            completion.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return
        rights = None
        if request.connection.authorizer.is_configured:
            rights = TopicRights(partial(request.may_see, ResourceType.TOPIC), self._view.image.access_control)
        heartbeat = Heartbeat(message, request.version, client_of(request), rights)
        self._groups.consumer_heartbeat(heartbeat, completion)

    def describe(self, message: ConsumerGroupDescribeRequest, request: Request, completion: Completion) -> None:
        if not self._is_served:
            completion.refuse(ErrorCode.UNSUPPORTED_VERSION)
            return
        gathering = Gathering(
            lambda found: completion.answer(
                ConsumerGroupDescribeResponse(
                    groups=[_described(name, found[name], message, request) for name in message.group_ids]
                )
            )
        )
        for name in dict.fromkeys(message.group_ids):
            part = gathering.part(name)
            if not name:
                part.refuse(ErrorCode.INVALID_GROUP_ID)
            elif allowed_on_group(request, AclOperation.DESCRIBE, name, part):
                self._groups.describe(name, self._describe, part)
        gathering.close()

    def _describe(self, group_id: str, group: Group | None) -> DescribedGroup:
        if not isinstance(group, ConsumerGroup):
            text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
            return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id)
        topics = self._groups.topics
        return DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name,
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=group.preferred_assignor(group.members.values(), self._groups.default_assignor),
            members=[_member(group, member, topics) for member in group.members.values()],
        )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client.client_id,
        client_host=member.client.host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(member.owned, topics),
        target_assignment=_assignment(group.target_of(member), topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Partitions, topics: Topics) -> Assignment:
    names = {topic.topic_id: name for name, topic in topics.items()}
    return Assignment(
        [
            TopicPartitions(topic_id, names[topic_id], indexes)
            for topic_id, indexes in partitions.by_topic()
            if topic_id in names
        ]
    )


def _described(
    name: str, found: DescribedGroup | ErrorCode, message: ConsumerGroupDescribeRequest, request: Request
) -> DescribedGroup:
    if isinstance(found, ErrorCode):
        return DescribedGroup(error_code=found, group_id=name)
    if not all(request.may_see(ResourceType.TOPIC, topic) for topic in _topics_of(found)):
        return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDES_TOPICS, name)
    if message.include_authorized_operations and not found.error_code:
        found.authorized_operations = request.rights_on_group(name)
    return found


def _topics_of(group: DescribedGroup) -> set[str]:
    """Return the topics that the description of the group names."""
    named = {name for member in group.members for name in member.subscribed_topic_names or ()}
    assignments = [one for member in group.members for one in (member.assignment, member.target_assignment)]
    return named | {topic.topic_name for one in assignments for topic in one.topic_partitions}


def _heartbeat_refused(_: ConsumerGroupHeartbeatRequest, error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error)


def _describe_refused(message: ConsumerGroupDescribeRequest, error: ErrorCode) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(error_code=error, group_id=name) for name in message.group_ids]
    )
