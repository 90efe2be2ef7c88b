"""JoinGroup: join a classic group, or rejoin it in a rebalance."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import (
    Bool,
    Bytes,
    Int16,
    Int32,
    String,
    ignorable,
    message,
    nullable,
    request,
    response,
    since,
)


@message
class JoinGroupRequestProtocol:
    name: String = ""
    metadata: Bytes = b""


@message
class JoinGroupRequest:
    SCHEMA: ClassVar = request(11)

    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, since(1), ignorable] = -1
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(5)] = None
    protocol_type: String = ""
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list)
    reason: Annotated[String | None, since(8), ignorable] = None


@message
class JoinGroupResponseMember:
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(5), ignorable] = None
    metadata: Bytes = b""


@message
class JoinGroupResponse:
    SCHEMA: ClassVar = response(11)

    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, since(7), ignorable] = None
    protocol_name: Annotated[String | None, nullable(since=7)] = ""
    leader: String = ""
    skip_assignment: Annotated[Bool, since(9)] = False
    member_id: String = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list)
