"""LeaveGroup: members depart from a classic group."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int16, Int32, String, ignorable, request, response, since, until


@dataclass(slots=True)
class MemberIdentity:
    member_id: String = ""
    group_instance_id: String | None = None
    reason: Annotated[String | None, since(5), ignorable] = None


@dataclass(slots=True)
class LeaveGroupRequest:
    SCHEMA: ClassVar = request(13, versions=(0, 5), flexible_from=4)

    group_id: String = ""
    member_id: Annotated[String, until(2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = field(default_factory=list)


@dataclass(slots=True)
class MemberResponse:
    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


@dataclass(slots=True)
class LeaveGroupResponse:
    SCHEMA: ClassVar = response(13, versions=(0, 5), flexible_from=4)

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    members: Annotated[list[MemberResponse], since(3)] = field(default_factory=list)
