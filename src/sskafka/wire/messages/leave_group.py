"""LeaveGroup: remove members from a classic group."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int16, Int32, String, ignorable, message, request, response, since, until


@message
class MemberIdentity:
    member_id: String = ""
    group_instance_id: String | None = None
    reason: Annotated[String | None, since(5), ignorable] = None


@message
class LeaveGroupRequest:
    SCHEMA: ClassVar = request(13)

    group_id: String = ""
    member_id: Annotated[String, until(2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = field(default_factory=list)


@message
class MemberResponse:
    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


@message
class LeaveGroupResponse:
    SCHEMA: ClassVar = response(13)

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    members: Annotated[list[MemberResponse], since(3)] = field(default_factory=list)
