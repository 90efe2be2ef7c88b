"""DescribeGroupTimeline, an SSKafka API: events of a group since its coordinator loaded it."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, Int64, String, message, request, response


@message
class DescribeGroupTimelineRequest:
    SCHEMA: ClassVar = request(20004)

    group_id: String = ""


@message
class TimelineEvent:
    """`duration_ms` is -1 except for a completed rebalance."""

    at_ms: Int64 = 0
    kind: String = ""
    generation: Int32 = 0
    reason: String = ""
    member_id: String = ""
    client_id: String = ""
    client_host: String = ""
    instance_id: String | None = None
    member_count: Int32 = 0
    duration_ms: Int64 = -1


@message
class DescribeGroupTimelineResponse:
    SCHEMA: ClassVar = response(20004)

    error_code: Int16 = 0
    events: list[TimelineEvent] = field(default_factory=list)
