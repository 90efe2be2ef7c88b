"""Members that still speak the classic protocol to a consumer group, so that a group can change protocol one consumer
at a time.

    JoinGroup    a heartbeat that says what the member wants and still has; its generation is the member's epoch
    SyncGroup    gives the assignment of that epoch
    Heartbeat    tells the member to join again when there is something to give up or to get

The coordinator assigns for them too: there is no leader among them.
"""

from struct import Struct

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.classic_requests import MEMBER_ID_REQUIRED_FROM, Joining
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.consumer_member import ClassicSide, ConsumerMember, MemberState
from sskafka.groups.consumer_records import by_topic
from sskafka.groups.consumer_requests import ConsumerRequests
from sskafka.groups.group import UNKNOWN_MEMBER
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.subscription import CONSUMER_PROTOCOL, read_subscription
from sskafka.groups.timeline import EventKind
from sskafka.model.coordination import Answer, Asker, Decision
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.codec import encode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from sskafka.wire.messages.consumer_protocol import TopicPartition as NamedPartitions
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupResponse
from sskafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_INT16 = Struct(">h")


class ClassicInConsumer:
    def __init__(self, consumer: ConsumerRequests, settings: GroupSettings) -> None:
        self._consumer = consumer
        self._settings = settings

    # -- JoinGroup

    def join(self, group: ConsumerGroup, joining: Joining, topics: Topics, new_uuid: str, now_ms: int) -> Decision:
        request, settings = joining.request, self._settings
        if not settings.session_timeout_min_ms <= request.session_timeout_ms <= settings.session_timeout_max_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        if request.protocol_type != CONSUMER_PROTOCOL or not _common_protocols(group, joining):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id == UNKNOWN_MEMBER and request.group_instance_id is None:
            member_id = joining.new_member_id(new_uuid)
            if joining.version >= MEMBER_ID_REQUIRED_FROM:
                refusal = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
                return Decision(answers=[Answer(joining.asker, refusal)])
        else:
            member_id = self._id_of(group, joining, new_uuid)
        if member_id not in group.members and len(group.members) >= settings.consumer_group_size_max:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        return self._joined(group, joining, member_id, topics, now_ms)

    def _id_of(self, group: ConsumerGroup, joining: Joining, new_uuid: str) -> str:
        request = joining.request
        known = group.static_members.get(request.group_instance_id or "")
        if request.member_id != UNKNOWN_MEMBER:
            if known is not None and known != request.member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            return request.member_id
        return joining.new_member_id(new_uuid)

    def _joined(self, group: ConsumerGroup, joining: Joining, member_id: str, topics: Topics, now_ms: int) -> Decision:
        name, metadata = joining.protocols[0]
        subscription = read_subscription(metadata)
        if subscription is None:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        request = joining.request
        decision = Decision(is_replayed=False)
        before = group.static_members.get(request.group_instance_id or "", member_id)
        if before != member_id:
            self._consumer.replace_static(group, group.members[before], member_id, decision, now_ms)
        member = group.members.get(member_id, ConsumerMember(member_id))
        said = member._replace(
            instance_id=request.group_instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            client=joining.client,
            topic_names=frozenset(subscription.topics),
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            classic=ClassicSide(request.session_timeout_ms, joining.protocols),
        )
        updated = self._consumer.changed(group, member, said, decision, now_ms)
        owned = _partitions(subscription, topics)
        updated = self._consumer.reconcile(group, updated, owned, decision, now_ms)
        self._consumer.watch(group, updated)
        response = JoinGroupResponse(
            generation_id=updated.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=name,
            leader="",
            member_id=member_id,
        )
        decision.answers.append(Answer(joining.asker, response))
        return decision

    # -- SyncGroup, Heartbeat

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, topics: Topics, asker: Asker) -> Decision:
        member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._consumer.watch(group, member)
        response = SyncGroupResponse(
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=_protocol(member),
            assignment=classic_assignment(member, topics),
        )
        return Decision(answers=[Answer(asker, response)])

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, asker: Asker) -> Decision:
        member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._consumer.watch(group, member)
        code = ErrorCode.REBALANCE_IN_PROGRESS if _must_join_again(group, member) else ErrorCode.NONE
        return Decision(answers=[Answer(asker, HeartbeatResponse(error_code=code))])

    def _member(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
        member = self._classic_member(group, member_id, instance_id)
        if generation != member.epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    @staticmethod
    def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
        if instance_id is not None and group.static_members.get(instance_id, member_id) != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = group.member(member_id)
        if member.classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # -- LeaveGroup

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, version: int, asker: Asker, now_ms: int
    ) -> Decision:
        identities = request.members if version >= 3 else [MemberIdentity(request.member_id)]
        decision = Decision(is_replayed=False)
        leaving: list[ConsumerMember] = []
        results = [self._leave_one(group, identity, leaving) for identity in identities]
        if leaving:
            self._consumer.remove(group, leaving, EventKind.LEFT, "", decision, now_ms)
        response = LeaveGroupResponse(members=results)
        if version < 3:
            response = LeaveGroupResponse(error_code=results[0].error_code)
        decision.answers.append(Answer(asker, response))
        return decision

    def _leave_one(
        self, group: ConsumerGroup, identity: MemberIdentity, leaving: list[ConsumerMember]
    ) -> MemberResponse:
        code = ErrorCode.NONE
        member_id = identity.member_id or group.static_members.get(identity.group_instance_id or "", "")
        try:
            leaving.append(self._classic_member(group, member_id, identity.group_instance_id))
        except KafkaError as error:
            code = error.code
        return MemberResponse(identity.member_id, identity.group_instance_id, code)


def _common_protocols(group: ConsumerGroup, joining: Joining) -> set[str]:
    """What all members of the classic protocol could use without this group: it may become a classic one again."""
    request = joining.request
    own_ids = {request.member_id, group.static_members.get(request.group_instance_id or "")}
    common = {name for name, _ in joining.protocols}
    for member in group.members.values():
        if member.classic is not None and member.member_id not in own_ids:
            common &= {name for name, _ in member.classic.protocols}
    return common


def classic_assignment(member: ConsumerMember, topics: Topics) -> bytes:
    """What the member has, in the words of the classic protocol: topics by name."""
    names = {topic.topic_id: name for name, topic in topics.items()}
    assignment = ConsumerProtocolAssignment(
        [
            NamedPartitions(names[topic_id], indexes)
            for topic_id, indexes in by_topic(member.assigned)
            if topic_id in names
        ]
    )
    version = _subscription_version(member)
    return _INT16.pack(version) + encode(assignment, version)


def _subscription_version(member: ConsumerMember) -> int:
    assert member.classic is not None
    (version,) = _INT16.unpack_from(member.classic.protocols[0][1])
    return min(int(version), ConsumerProtocolAssignment.SCHEMA.versions.last)


def _protocol(member: ConsumerMember) -> str:
    assert member.classic is not None
    return member.classic.protocols[0][0]


def _must_join_again(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    missing = group.target_of(member) - member.assigned
    can_get = any(group.is_free_for(member.member_id, partition) for partition in missing)
    return member.state is MemberState.UNRELEASED_PARTITIONS and can_get


def _partitions(subscription: ConsumerProtocolSubscription, topics: Topics) -> Partitions:
    """Those who know nothing of keeping partitions have given up all before they join."""
    if not subscription.owned_partitions:
        return NOTHING
    return frozenset(
        (topics[item.topic].topic_id, index)
        for item in subscription.owned_partitions
        if item.topic in topics
        for index in item.partitions
    )
