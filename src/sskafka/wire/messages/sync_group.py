"""SyncGroup: the leader of a classic group sends all assignments, and each member receives its own."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bytes, Int16, Int32, String, ignorable, message, request, response, since


@message
class SyncGroupRequestAssignment:
    member_id: String = ""
    assignment: Bytes = b""


@message
class SyncGroupRequest:
    SCHEMA: ClassVar = request(14)

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    protocol_type: Annotated[String | None, since(5), ignorable] = None
    protocol_name: Annotated[String | None, since(5), ignorable] = None
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)


@message
class SyncGroupResponse:
    SCHEMA: ClassVar = response(14)

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, since(5), ignorable] = None
    protocol_name: Annotated[String | None, since(5), ignorable] = None
    assignment: Bytes = b""
