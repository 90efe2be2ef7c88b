"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups; ListGroups, DescribeGroups and DeleteGroups."""

from collections.abc import Generator, Iterable

from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.groups.classic_group import ClassicGroup, State
from sskafka.groups.group import Group, GroupEvent
from sskafka.groups.members import Client
from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.coordination import Completion
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.completions import Gathering, completing_api
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from sskafka.wire.messages.describe_group_timeline import (
    DescribeGroupTimelineRequest,
    DescribeGroupTimelineResponse,
    TimelineEvent,
)
from sskafka.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from sskafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from sskafka.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NOT_FOUND_IS_AN_ERROR_FROM = 6
PROTOCOL_NAMED_FROM = 5
NO_PROTOCOL_IS_NULL_FROM = 7


class GroupHandlers:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups
        self.handle_join = completing_api(ApiKey.JOIN_GROUP, self.join, _join_refused, self.join_abandoned, _adapt_join)
        self.handle_sync = completing_api(ApiKey.SYNC_GROUP, self.sync, _sync_refused)
        self.handle_heartbeat = completing_api(ApiKey.HEARTBEAT, self.heartbeat, _heartbeat_refused)
        self.handle_leave = completing_api(ApiKey.LEAVE_GROUP, self.leave, _leave_refused)
        self.handle_describe = completing_api(ApiKey.DESCRIBE_GROUPS, self.describe_groups, _describe_refused)
        self.handle_delete = completing_api(ApiKey.DELETE_GROUPS, self.delete_groups, _delete_refused)
        self.handle_timeline = completing_api(ApiKey.DESCRIBE_GROUP_TIMELINE, self.describe_timeline, _timeline_refused)

    # -- members

    def join(self, message: JoinGroupRequest, request: Request, completion: Completion) -> None:
        if allowed_on_group(request, AclOperation.READ, message.group_id, completion):
            self._groups.join(message, request.version, client_of(request), completion)

    def join_abandoned(self, message: JoinGroupRequest, completion: Completion) -> None:
        self._groups.abandon_join(message.group_id, completion)

    def sync(self, message: SyncGroupRequest, request: Request, completion: Completion) -> None:
        is_named = message.protocol_type is not None and message.protocol_name is not None
        if request.version >= PROTOCOL_NAMED_FROM and not is_named:
            completion.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif allowed_on_group(request, AclOperation.READ, message.group_id, completion):
            self._groups.sync(message, completion)

    def heartbeat(self, message: HeartbeatRequest, request: Request, completion: Completion) -> None:
        if allowed_on_group(request, AclOperation.READ, message.group_id, completion):
            self._groups.heartbeat(message, completion)

    def leave(self, message: LeaveGroupRequest, request: Request, completion: Completion) -> None:
        if allowed_on_group(request, AclOperation.READ, message.group_id, completion):
            self._groups.leave(message, request.version, completion)

    # -- administrators

    def list_groups(self, message: ListGroupsRequest, request: Request) -> Generator[None, None, ListGroupsResponse]:
        may_all = request.may_see(ResourceType.CLUSTER, CLUSTER_NAME)
        listed = []
        for group in self._groups.list_groups(message.states_filter, message.types_filter):
            if may_all or request.may_see(ResourceType.GROUP, group.group_id):
                listed.append(ListedGroup(group.group_id, group.protocol_type, group.state_name, group.type_name))
            yield
        is_loading = self._groups.is_loading
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
        return ListGroupsResponse(error_code=code, groups=listed)

    def describe_groups(self, message: DescribeGroupsRequest, request: Request, completion: Completion) -> None:
        gathering = Gathering(
            lambda found: completion.answer(
                DescribeGroupsResponse(
                    groups=[_described(name, found[name], message, request) for name in message.groups]
                )
            )
        )
        for name in dict.fromkeys(message.groups):
            part = gathering.part(name)
            if allowed_on_group(request, AclOperation.DESCRIBE, name, part):
                self._groups.describe(name, _describe, part)
        gathering.close()

    def describe_timeline(
        self, message: DescribeGroupTimelineRequest, request: Request, completion: Completion
    ) -> None:
        if allowed_on_group(request, AclOperation.DESCRIBE, message.group_id, completion):
            self._groups.describe_timeline(message.group_id, _timeline_response, completion)

    def delete_groups(self, message: DeleteGroupsRequest, request: Request, completion: Completion) -> None:
        names = list(dict.fromkeys(message.groups_names))
        gathering = Gathering(
            lambda codes: completion.answer(
                DeleteGroupsResponse(results=[DeletableGroupResult(name, codes[name]) for name in names])
            )
        )
        for name in names:
            part = gathering.part(name)
            if allowed_on_group(request, AclOperation.DELETE, name, part):
                self._groups.delete_group(name, part)
        gathering.close()


def client_of(request: Request) -> Client:
    return Client(request.client_id or "", f"/{request.connection.peer.rpartition(':')[0]}")


def allowed_on_group(request: Request, operation: AclOperation, group_id: str, completion: Completion) -> bool:
    """Return whether the client may do `operation` on the group; refuse the request if it may not."""
    if request.may_on_group(operation, group_id):
        return True
    completion.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return False


def _described(
    name: str, found: DescribedGroup | ErrorCode, message: DescribeGroupsRequest, request: Request
) -> DescribedGroup:
    if isinstance(found, ErrorCode):
        return DescribedGroup(error_code=found, group_id=name)
    if request.version < NOT_FOUND_IS_AN_ERROR_FROM and found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        found.error_code, found.error_message = ErrorCode.NONE, None
    if message.include_authorized_operations and not found.error_code:
        found.authorized_operations = request.rights_on_group(name)
    return found


def _describe(group_id: str, group: Group | None) -> DescribedGroup:
    """Describe a group that does not exist as Dead; newer versions get an error, too."""
    if isinstance(group, ClassicGroup):
        return _describe_classic(group)
    text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
    return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id, State.DEAD.value)


def _describe_classic(group: ClassicGroup) -> DescribedGroup:
    is_stable = group.state is State.STABLE
    protocol = group.protocol_name if is_stable else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member.member_id,
                member.instance_id,
                member.client.client_id,
                member.client.host,
                member.metadata(protocol) if is_stable else b"",
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


def _timeline_response(events: Iterable[GroupEvent]) -> DescribeGroupTimelineResponse:
    return DescribeGroupTimelineResponse(events=[_event(event) for event in events])


def _event(event: GroupEvent) -> TimelineEvent:
    return TimelineEvent(
        event.at_ms,
        event.kind,
        event.generation,
        event.reason,
        event.member_id,
        event.client_id,
        event.client_host,
        event.instance_id,
        event.member_count,
        -1 if event.duration_ms is None else event.duration_ms,
    )


def _timeline_refused(_: DescribeGroupTimelineRequest, error: ErrorCode) -> DescribeGroupTimelineResponse:
    return DescribeGroupTimelineResponse(error_code=error)


def _join_refused(message: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    """Make the response for an error of the coordinator. Unlike errors of the group, it has no member id."""
    member_id = message.member_id if error is ErrorCode.INVALID_GROUP_ID else ""
    return JoinGroupResponse(error_code=error, member_id=member_id)


def _adapt_join(response: JoinGroupResponse, version: int) -> None:
    if response.error_code:
        response.protocol_name = None if version >= NO_PROTOCOL_IS_NULL_FROM else ""


def _sync_refused(_: SyncGroupRequest, error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)


def _heartbeat_refused(_: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    """Answer NONE while the group is being loaded, so that members do not rejoin because of it."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse()
    return HeartbeatResponse(error_code=error)


def _leave_refused(_: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


def _describe_refused(message: DescribeGroupsRequest, error: ErrorCode) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(error_code=error, group_id=name) for name in message.groups])


def _delete_refused(message: DeleteGroupsRequest, error: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[DeletableGroupResult(name, error) for name in message.groups_names])
