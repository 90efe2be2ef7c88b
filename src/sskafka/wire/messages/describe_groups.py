"""DescribeGroups: state and members of classic groups."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Bytes, Int16, Int32, String, ignorable, message, request, response, since


@message
class DescribeGroupsRequest:
    SCHEMA: ClassVar = request(15)

    groups: list[String] = field(default_factory=list)
    include_authorized_operations: Annotated[Bool, since(3)] = False


@message
class DescribedGroupMember:
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(4), ignorable] = None
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


@message
class DescribedGroup:
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(6), ignorable] = None
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    authorized_operations: Annotated[Int32, since(3), ignorable] = -2147483648


@message
class DescribeGroupsResponse:
    SCHEMA: ClassVar = response(15)

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    groups: list[DescribedGroup] = field(default_factory=list)
