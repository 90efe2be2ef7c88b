"""DeleteGroups: delete groups without members."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, String, message, request, response


@message
class DeleteGroupsRequest:
    SCHEMA: ClassVar = request(42)

    groups_names: list[String] = field(default_factory=list)


@message
class DeletableGroupResult:
    group_id: String = ""
    error_code: Int16 = 0


@message
class DeleteGroupsResponse:
    SCHEMA: ClassVar = response(42)

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = field(default_factory=list)
