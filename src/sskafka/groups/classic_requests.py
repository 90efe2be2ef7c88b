"""Requests to classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A JoinGroup or SyncGroup that has to wait for other members is parked with its member, and a later decision responds.
Errors that concern one member are raised as KafkaError. What members report about themselves is soft state, see
classic_group.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from sskafka.groups.classic_group import ClassicGroup, State, StaticReplacement, select_protocol
from sskafka.groups.classic_rebalance import (
    ClassicRebalance,
    answer_join,
    answer_sync,
    joined_members,
    joined_response,
    note_member,
    refuse_parked,
    synced_response,
)
from sskafka.groups.group import UNKNOWN_MEMBER, EventKind, Group
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.log_records import GroupResult, group_record
from sskafka.groups.member_memory import MemberMemory, classic_member_bytes
from sskafka.groups.members import ClassicMember, Client, Protocols
from sskafka.model.coordination import Completion, CoordinatorResult, Respond
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from sskafka.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_ID_REQUIRED_FROM = 4
SKIPS_ASSIGNMENT_FROM = 9
REASON_LENGTH_MAX = 255
NAME_LENGTH_MAX = 255
NO_REASON = "no reason given"


class Joining(NamedTuple):
    """A JoinGroup request, its version, client and completion."""

    request: JoinGroupRequest
    version: int
    client: Client
    completion: Completion

    @property
    def protocols(self) -> Protocols:
        """The protocols without duplicates, because a protocol is common if its count is the number of members."""
        return tuple({protocol.name: bytes(protocol.metadata) for protocol in self.request.protocols}.items())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The rebalance timeout. Version 0 has none and uses the session timeout."""
        timeout_ms = self.request.rebalance_timeout_ms
        return timeout_ms if timeout_ms >= 0 else self.request.session_timeout_ms

    def refused(self, error: ErrorCode) -> GroupResult:
        return CoordinatorResult(answer=join_refusal(error, self.request.member_id))

    @property
    def requires_known_member_id(self) -> bool:
        """Whether the member has to join again with the id that it gets (MEMBER_ID_REQUIRED). So a client that gives up
        after its first request leaves no member behind."""
        is_new = self.request.member_id == UNKNOWN_MEMBER and self.request.group_instance_id is None
        return is_new and self.version >= MEMBER_ID_REQUIRED_FROM

    @property
    def reason(self) -> str:
        return (self.request.reason or NO_REASON)[:REASON_LENGTH_MAX]

    def member(self, member_id: str) -> ClassicMember:
        """Return a member with this id, as the request describes it."""
        request = self.request
        return ClassicMember(
            member_id,
            request.group_instance_id,
            self.client,
            request.session_timeout_ms,
            self.rebalance_timeout_ms,
            self.protocols,
        )

    def new_member_id(self, uuid: str) -> str:
        """Return a member id that begins with the instance id or client id, cut to the length that a record allows."""
        instance_id = self.request.group_instance_id
        name = instance_id if instance_id is not None else self.client.client_id
        return f"{name[:NAME_LENGTH_MAX]}-{uuid}"


class ClassicRequests:
    """`find` returns a classic group or None; `create` creates one; `groups` are those of the shard."""

    def __init__(
        self,
        find: Callable[[str], ClassicGroup | None],
        create: Callable[[str, int], ClassicGroup],
        rebalance: ClassicRebalance,
        settings: GroupSettings,
        new_uuid: Callable[[], str],
        groups: Collection[Group],
        memory: MemberMemory,
    ) -> None:
        self._groups = groups
        self._memory = memory
        self._find = find
        self._create = create
        self._rebalance = rebalance
        self._settings = settings
        self._new_uuid = new_uuid

    # -- JoinGroup

    def join(self, joining: Joining, now_ms: int) -> GroupResult:
        """Handle JoinGroup. An error response has the member id of the request."""
        try:
            check_session_timeout(joining.request, self._settings)
            size = classic_member_bytes(joining.protocols) + len(joining.request.group_id)
            if not self._memory.take(size, self._groups, now_ms):
                raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
            return self.join_group(self._group_to_join(joining.request, now_ms), joining, now_ms)
        except KafkaError as error:
            return joining.refused(error.code)

    def _group_to_join(self, request: JoinGroupRequest, now_ms: int) -> ClassicGroup:
        """Return the group. A new one exists only in memory until its first generation is complete."""
        group = self._find(request.group_id)
        if group is None:
            if request.member_id != UNKNOWN_MEMBER:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            group = self._create(request.group_id, now_ms)
        return group

    def join_group(self, group: ClassicGroup, joining: Joining, now_ms: int) -> GroupResult:
        request = joining.request
        if not group.accepts(request.member_id, self._settings.group_size_max):
            return self._reject_full(group, joining, now_ms)
        if not group.supports(request.protocol_type, joining.protocols):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id == UNKNOWN_MEMBER:
            return self._join_new(group, joining, now_ms)
        return self._join_known(group, joining, now_ms)

    def _reject_full(self, group: ClassicGroup, joining: Joining, now_ms: int) -> GroupResult:
        """Refuse a member because the group is full, and remove it if it was a member before the limit was lowered."""
        decision: GroupResult = CoordinatorResult(answer=join_refusal(ErrorCode.GROUP_MAX_SIZE_REACHED))
        member = group.members.get(joining.request.member_id)
        if member is not None:
            reason = "the group is full"
            decision += self._rebalance.remove(group, member, EventKind.LEFT, reason, now_ms)
            decision += self._rebalance.after_removal(group, reason, now_ms)
        return decision

    def _join_new(self, group: ClassicGroup, joining: Joining, now_ms: int) -> GroupResult:
        instance_id = joining.request.group_instance_id
        member_id = joining.new_member_id(self._new_uuid())
        if instance_id is not None and instance_id in group.static_members:
            return self._replace_static(group, joining, member_id, now_ms)
        if instance_id is None and joining.version >= MEMBER_ID_REQUIRED_FROM:
            self._rebalance.expect_pending(group, member_id, joining.request.session_timeout_ms)
            return CoordinatorResult(answer=join_refusal(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return self._add(group, joining, member_id, now_ms)

    def _join_known(self, group: ClassicGroup, joining: Joining, now_ms: int) -> GroupResult:
        member_id = joining.request.member_id
        if member_id in group.pending_members and joining.request.group_instance_id is None:
            return self._add(group, joining, member_id, now_ms)
        group.check_member(member_id, joining.request.group_instance_id)
        member = group.members[member_id]
        is_unchanged = member.protocols == joining.protocols
        is_repeated = group.state is State.COMPLETING  # the member did not receive the first response
        is_settled = group.state is State.STABLE and not group.is_leader(member_id)
        if is_unchanged and (is_repeated or is_settled):
            self._rebalance.renew_session(group, member)
            return CoordinatorResult(answer=joined_response(group, member))
        effects = self._update(group, member, joining)
        note_member(group, member, EventKind.REJOINED, joining.reason, now_ms)
        reason = f"{member.client.client_id} joined again: {joining.reason}"
        decision: GroupResult = CoordinatorResult(effects=effects)
        return decision + self._rebalance.prepare_or_complete(group, reason, now_ms)

    def _add(self, group: ClassicGroup, joining: Joining, member_id: str, now_ms: int) -> GroupResult:
        member = joining.member(member_id)
        member.is_new = True
        member.awaiting_join = joining.completion
        group.add_member(member, joining.request.protocol_type)
        if group.state is State.PREPARING and group.previous_state is State.EMPTY:
            group.was_joined_lately = True
        self._rebalance.renew_session(group, member)
        note_member(group, member, EventKind.JOINED, joining.reason, now_ms)
        reason = f"{member.client.client_id} joined: {joining.reason}"
        return self._rebalance.prepare_or_complete(group, reason, now_ms)

    def _update(self, group: ClassicGroup, member: ClassicMember, joining: Joining) -> list[Respond]:
        """Update a member. Its new request replaces the one that is parked."""
        effects = answer_join(member, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        group.change_protocols(member, joining.protocols)
        member.session_timeout_ms = joining.request.session_timeout_ms
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms
        member.client = joining.client
        member.awaiting_join = joining.completion
        self._rebalance.renew_session(group, member)
        return effects

    def _replace_static(self, group: ClassicGroup, joining: Joining, new_id: str, now_ms: int) -> GroupResult:
        """A static member is back under a new id. It was restarted, or runs twice: the old id is fenced either way.

        In a stable group whose protocol stays the same, the member takes over when the record of that is replayed.
        Otherwise a rebalance begins, which is soft state like every rebalance."""
        old = group.members[group.static_members[joining.request.group_instance_id or ""]]
        member = joining.member(new_id)
        member.assignment, member.is_new = old.assignment, old.is_new
        replacement = StaticReplacement(old, member, f"static member is back: {joining.reason}", now_ms)
        members = group.members_after(replacement)
        if group.state is State.STABLE and select_protocol(members) == group.protocol_name:
            return _rejoin_without_rebalance(group, replacement, members, joining.version)
        refused: GroupResult = CoordinatorResult(effects=refuse_parked(old, ErrorCode.FENCED_INSTANCE_ID))
        member.awaiting_join = joining.completion
        group.replace_static_member(replacement)
        self._rebalance.static_member_replaced(group, replacement)
        reason = f"static member {member.instance_id} is back: {joining.reason}"
        return refused + self._rebalance.prepare_or_complete(group, reason, now_ms)

    def abandon_join(self, group_id: str, completion: Completion, now_ms: int) -> GroupResult:
        """Remove a new member whose connection was lost: it never learned its id, so it cannot rejoin.

        Other members stay until their sessions time out, because they may reconnect."""
        group = self._find(group_id)
        waiting = group.members.values() if group is not None else ()
        member = next((member for member in waiting if member.awaiting_join is completion), None)
        if group is None or member is None or not member.is_new:
            return CoordinatorResult()
        reason = "its connection was lost while it waited to join"
        removed = self._rebalance.remove(group, member, EventKind.LEFT, reason, now_ms)
        return removed + self._rebalance.after_removal(group, f"{member.client.client_id}: {reason}", now_ms)

    # -- SyncGroup

    def sync(self, request: SyncGroupRequest, completion: Completion, now_ms: int) -> GroupResult:
        group = self._known_group(request.group_id)
        group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        _check_same(request.protocol_type, group.protocol_type)
        _check_same(request.protocol_name, group.protocol_name)
        member = group.members[request.member_id]
        match group.state:
            case State.PREPARING:
                raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
            case State.COMPLETING:
                return self._sync_generation(group, member, request, completion, now_ms)
            case State.STABLE:
                self._rebalance.synced(group, member)
                self._rebalance.renew_session(group, member)
                return CoordinatorResult(answer=synced_response(group, member.assignment))
            case _:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def _sync_generation(
        self, group: ClassicGroup, member: ClassicMember, request: SyncGroupRequest, completion: Completion, now_ms: int
    ) -> GroupResult:
        repeated = answer_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        decision: GroupResult = CoordinatorResult(effects=repeated)
        member.awaiting_sync = completion
        self._rebalance.synced(group, member)
        if group.is_leader(member.member_id):
            assignments = {item.member_id: bytes(item.assignment) for item in request.assignments}
            decision += self._rebalance.complete_sync(group, assignments, now_ms)
        return decision

    # -- Heartbeat

    def heartbeat(self, request: HeartbeatRequest) -> GroupResult:
        group = self._known_group(request.group_id)
        group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        member = group.members[request.member_id]
        self._rebalance.renew_session(group, member)
        is_rebalancing = group.state is State.PREPARING
        code = ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE
        return CoordinatorResult(answer=HeartbeatResponse(error_code=code))

    def renew_session_of(self, group: ClassicGroup, member_id: str) -> None:
        """Renew the session of a member that has committed offsets."""
        member = group.members.get(member_id)
        if member is not None and group.state in {State.STABLE, State.PREPARING}:
            self._rebalance.renew_session(group, member)

    # -- LeaveGroup

    def leave(self, request: LeaveGroupRequest, version: int, now_ms: int) -> GroupResult:
        identities = request.members if version >= 3 else [MemberIdentity(request.member_id)]
        group = self._find(request.group_id)
        decision: GroupResult = CoordinatorResult()
        results: list[MemberResponse] = []
        for identity in identities:
            code = ErrorCode.NONE
            try:
                decision += self._end_membership(group, identity, now_ms)
            except KafkaError as error:
                code = error.code
            results.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
        left = [identity for identity, result in zip(identities, results, strict=True) if not result.error_code]
        if group is not None and left:
            reason = f"{left[0].member_id or left[0].group_instance_id} left: {_reason_of(left[0])}"
            decision += self._rebalance.after_removal(group, reason, now_ms)
        return decision + CoordinatorResult(answer=leave_response(results, version))

    def _end_membership(self, group: ClassicGroup | None, identity: MemberIdentity, now_ms: int) -> GroupResult:
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == UNKNOWN_MEMBER and instance_id is not None:
            member_id = group.static_members.get(instance_id, UNKNOWN_MEMBER)  # from an administrator
        if member_id in group.pending_members:
            self._rebalance.forget_pending(group, member_id)
            return CoordinatorResult()
        group.check_member(member_id, instance_id)
        return self._rebalance.remove(group, group.members[member_id], EventKind.LEFT, _reason_of(identity), now_ms)

    def _known_group(self, group_id: str) -> ClassicGroup:
        group = self._find(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group


def _rejoin_without_rebalance(
    group: ClassicGroup, replacement: StaticReplacement, members: Collection[ClassicMember], version: int
) -> GroupResult:
    """Let a static member go on with the assignment that it had, without a rebalance.

    An old client that is told that it leads the group would compute a new assignment, so it is told the old leader."""
    old_id, new_id = replacement.old.member_id, replacement.member.member_id
    response = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=new_id,
    )
    if version >= SKIPS_ASSIGNMENT_FROM and group.is_leader(old_id):
        response.leader = new_id
        response.skip_assignment = True
        response.members = joined_members(members, group.protocol_name)
    record = group_record(group.group_id, group.replaced_value(replacement), replacement=replacement)
    return CoordinatorResult([record], response)


def leave_response(results: list[MemberResponse], version: int) -> LeaveGroupResponse:
    """Return the response. Before version 3, a request has one member, and the response one error code."""
    return LeaveGroupResponse(members=results) if version >= 3 else LeaveGroupResponse(error_code=results[0].error_code)


def join_refusal(error: ErrorCode, member_id: str = UNKNOWN_MEMBER) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id)


def check_session_timeout(request: JoinGroupRequest, settings: GroupSettings) -> None:
    if not settings.session_timeout_min_ms <= request.session_timeout_ms <= settings.session_timeout_max_ms:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)


def _check_same(requested: str | None, known: str | None) -> None:
    if requested is not None and known is not None and requested != known:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _reason_of(identity: MemberIdentity) -> str:
    return (identity.reason or NO_REASON)[:REASON_LENGTH_MAX]
