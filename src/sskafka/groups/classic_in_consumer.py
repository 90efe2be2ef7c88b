"""Members of a consumer group that use the classic protocol, so that a group can be migrated one consumer at a time.

    JoinGroup    acts as a heartbeat with the member's subscription and owned partitions; the generation in the response
                 is the member epoch
    SyncGroup    returns the assignment of that epoch
    Heartbeat    tells the member to rejoin when it has partitions to revoke or to receive

The coordinator computes the assignment of these members, too; none of them is a leader.
"""

from collections.abc import Callable, Hashable
from struct import Struct
from typing import Protocol

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.classic_requests import Joining, check_session_timeout, join_refusal, leave_response
from sskafka.groups.consumer_group import ConsumerGroup, Topics
from sskafka.groups.consumer_heartbeat import check_instance
from sskafka.groups.consumer_records import Draft
from sskafka.groups.consumer_requests import CLASSIC_JOIN, CLASSIC_SYNC, ConsumerRequests, timer_key
from sskafka.groups.encoded_partitions import encoded_assignment
from sskafka.groups.group import UNKNOWN_MEMBER, EventKind
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.log_records import GroupResult
from sskafka.groups.members import ClassicSide, ConsumerMember, MemberState
from sskafka.groups.partition_set import PartitionSet
from sskafka.groups.subscription import BYTES_MAX, CONSUMER_PROTOCOL, LISTED_MAX, listed_count, read_subscription
from sskafka.model.coordination import CoordinatorResult, Timers
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupResponse
from sskafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_INT16 = Struct(">h")


class Downgrades(Protocol):
    """Turns a consumer group into a classic one."""

    def may_downgrade(self, group: ConsumerGroup) -> bool:
        """Return whether all members use the classic protocol, and the settings allow a downgrade."""
        ...

    def downgraded_after_replacement(self, draft: Draft, now_ms: int) -> Draft:
        """Downgrade the group: its last member of the newer protocol has come back with the classic one."""
        ...


class ClassicInConsumer:
    """`topics` returns the current topics of the cluster."""

    def __init__(
        self,
        consumer: ConsumerRequests,
        downgrades: Downgrades,
        topics: Callable[[], Topics],
        settings: GroupSettings,
        timers: Timers,
    ) -> None:
        self._consumer = consumer
        self._downgrades = downgrades
        self._topics = topics
        self._settings = settings
        self._timers = timers

    # -- JoinGroup

    def join(self, group: ConsumerGroup, joining: Joining, new_uuid: str, now_ms: int) -> GroupResult:
        request = joining.request
        check_session_timeout(request, self._settings)
        self._check_policy(group)
        member_id = request.member_id or joining.new_member_id(new_uuid)
        self._consumer.require_room(group, member_id)
        if request.protocol_type != CONSUMER_PROTOCOL or not _common_protocols(group, joining):
            text = f"Member {member_id}'s protocols are not supported."
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)
        if joining.requires_known_member_id:
            return CoordinatorResult(answer=join_refusal(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        if request.group_instance_id is not None and request.member_id != UNKNOWN_MEMBER:
            check_instance(group, request.group_instance_id, request.member_id)
        return self._joined(group, joining, member_id, now_ms)

    def _check_policy(self, group: ConsumerGroup) -> None:
        if self._settings.migration_policy == "disabled":
            text = (
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the group "
                "migration is disabled."
            )
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)

    def _joined(self, group: ConsumerGroup, joining: Joining, member_id: str, now_ms: int) -> GroupResult:
        encoded = joining.protocols[0][1]
        if len(encoded) > BYTES_MAX or (listed_count(encoded) or 0) > LISTED_MAX:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The subscription is too large for a consumer group.")
        subscription = read_subscription(encoded)
        if subscription is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Malformed embedded consumer protocol.")
        instance_id = joining.request.group_instance_id
        old = group.members.get(group.static_members.get(instance_id or "", member_id))
        is_change_of_protocol = instance_id is not None and old is not None and old.classic is None
        draft = Draft(group)
        if old is not None and old.member_id != member_id:
            draft = self._consumer.replace_static(draft, old, member_id, now_ms)
        member = draft.group.members.get(member_id, ConsumerMember(member_id))
        said = _member_from_request(member, joining, subscription)
        draft = self._consumer.changed(draft, member, said, now_ms, resolves_patterns=False)
        is_last_change = is_change_of_protocol and self._downgrades.may_downgrade(draft.group)
        if not is_last_change:
            draft = self._consumer.maybe_assign(draft, now_ms)
        owned = _partitions(subscription, self._topics())
        is_resubscribed = said.subscription != member.subscription
        draft = self._consumer.reconcile(draft, member_id, owned, is_resubscribed, now_ms)
        updated = draft.group.members[member_id]
        if is_last_change:
            draft = self._downgrades.downgraded_after_replacement(draft, now_ms)
        else:
            self._timers.cancel(timer_key(CLASSIC_JOIN, group, updated))
            self._consumer.watch(group, updated)
            self._expect_sync(group, updated)
        return draft.decided(_joined_response(updated, joining))

    # -- SyncGroup, Heartbeat

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> GroupResult:
        member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        _check_protocol(member, request)
        if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member)
            text = (
                f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should rejoin "
                "to catch up."
            )
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, text)
        self._timers.cancel(timer_key(CLASSIC_SYNC, group, member))
        self._consumer.watch(group, member)
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=classic_assignment(member, self._topics()),
        )
        return CoordinatorResult(answer=response)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int) -> GroupResult:
        """Respond, and update the target assignment if need be. Apache Kafka does not update it here, but perhaps no
        member of the group sends other heartbeats."""
        member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._consumer.watch(group, member)
        draft = self._consumer.topics_may_have_changed(Draft(group), now_ms)
        draft = self._consumer.maybe_assign(draft, now_ms)
        code = ErrorCode.NONE
        if _must_join_again(draft.group, member):
            self._expect_join(group, member)
            code = ErrorCode.REBALANCE_IN_PROGRESS
        return draft.decided(HeartbeatResponse(error_code=code))

    def _member(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
        if instance_id is not None:
            check_instance(group, instance_id, member_id)
        member = group.member(member_id)
        if member.classic is None:
            text = f"Member {member_id} does not use the classic protocol."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        if generation != member.epoch:
            text = (
                f"The request generation id {generation} is not equal to the member epoch {member.epoch} of member "
                f"{member_id}."
            )
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, text)
        return member

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Expect the member to rejoin. The timeout runs from the first time that the member was told to."""
        key = timer_key(CLASSIC_JOIN, group, member)
        if key not in self._timers:
            self._expect(group, member, key, "did not join again")

    def _expect_sync(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._expect(group, member, timer_key(CLASSIC_SYNC, group, member), "sent no SyncGroup in time")

    def _expect(self, group: ConsumerGroup, member: ConsumerMember, key: Hashable, reason: str) -> None:
        group_id, member_id, epoch = group.group_id, member.member_id, member.epoch
        self._timers.schedule(
            key,
            max(member.rebalance_timeout_ms, 0),
            lambda now_ms: self._consumer.expire(group_id, member_id, reason, now_ms, epoch),
        )

    # -- LeaveGroup

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, version: int, now_ms: int) -> GroupResult:
        identities = request.members if version >= 3 else [MemberIdentity(request.member_id)]
        leaving: dict[str, ConsumerMember] = {}
        results: list[MemberResponse] = []
        for identity in identities:
            code = ErrorCode.NONE
            try:
                member = _leaving_member(group, identity)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            results.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
        draft = Draft(group)
        if leaving:
            draft = self._consumer.remove(draft, leaving.values(), EventKind.LEFT, "", now_ms)
        return draft.decided(leave_response(results, version))


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """Return the member, of either protocol: administrators remove members of both with LeaveGroup."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None:
        member_id = member_id or group.static_members.get(instance_id, UNKNOWN_MEMBER)
        check_instance(group, instance_id, member_id)
    return group.member(member_id)


def _member_from_request(
    member: ConsumerMember, joining: Joining, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    """Return the member as its JoinGroup request describes it."""
    request = joining.request
    return member._replace(
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client=joining.client,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        classic=ClassicSide(request.session_timeout_ms, joining.protocols),
    )


def _joined_response(member: ConsumerMember, joining: Joining) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=joining.protocols[0][0],
        leader="",
        member_id=member.member_id,
    )


def _common_protocols(group: ConsumerGroup, joining: Joining) -> set[str]:
    """Return the protocols that all classic members have in common: the group may be downgraded."""
    request = joining.request
    own_ids = {request.member_id, group.static_members.get(request.group_instance_id or "")}
    common = {name for name, _ in joining.protocols}
    for member in group.members.values():
        if member.classic is not None and member.member_id not in own_ids:
            common &= {name for name, _ in member.classic.protocols}
    return common


def classic_assignment(member: ConsumerMember, topics: Topics) -> bytes:
    """Return the member's assignment in the format of the classic protocol, with topics by name."""
    names = {topic.topic_id: name for name, topic in topics.items()}
    return _INT16.pack(_subscription_version(member)) + encoded_assignment(member.assigned, names)


def _subscription_version(member: ConsumerMember) -> int:
    assert member.classic is not None
    (version,) = _INT16.unpack_from(member.classic.protocols[0][1])
    return min(int(version), ConsumerProtocolAssignment.SCHEMA.versions.last)


def _check_protocol(member: ConsumerMember, request: SyncGroupRequest) -> None:
    assert member.classic is not None
    kind, name, known = request.protocol_type, request.protocol_name, member.classic.protocols[0][0]
    text = ""
    if kind is not None and kind != CONSUMER_PROTOCOL:
        text = (
            f"The protocol type {kind} from member {member.member_id} request is not equal to the group protocol type "
            f"{CONSUMER_PROTOCOL}."
        )
    elif name is not None and name != known:
        text = (
            f"The protocol name {name} from member {member.member_id} request is not equal to the protocol name "
            f"{known} returned in the join response."
        )
    if text:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)


def _must_join_again(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    missing = group.target_of(member) - member.assigned
    can_get = group.free_for(member, missing) == missing
    return member.state is MemberState.UNRELEASED_PARTITIONS and can_get


def _partitions(subscription: ConsumerProtocolSubscription, topics: Topics) -> Partitions:
    """Return the owned partitions. A member that does not report them has revoked all before it joins."""
    if not subscription.owned_partitions:
        return NOTHING
    return PartitionSet.of_topics(
        (topics[item.topic].topic_id, item.partitions) for item in subscription.owned_partitions if item.topic in topics
    )
