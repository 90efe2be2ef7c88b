"""Heartbeat: a member of a classic group reports that it is alive, and learns about rebalances."""

from typing import Annotated, ClassVar

from sskafka.wire.schema import Int16, Int32, String, ignorable, message, request, response, since


@message
class HeartbeatRequest:
    SCHEMA: ClassVar = request(12)

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None


@message
class HeartbeatResponse:
    SCHEMA: ClassVar = response(12)

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
