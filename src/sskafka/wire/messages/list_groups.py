"""ListGroups: list the groups that a broker coordinates."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int16, Int32, String, ignorable, message, request, response, since


@message
class ListGroupsRequest:
    SCHEMA: ClassVar = request(16)

    states_filter: Annotated[list[String], since(4)] = field(default_factory=list)
    types_filter: Annotated[list[String], since(5)] = field(default_factory=list)


@message
class ListedGroup:
    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, since(4), ignorable] = ""
    group_type: Annotated[String, since(5), ignorable] = ""


@message
class ListGroupsResponse:
    SCHEMA: ClassVar = response(16)

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = field(default_factory=list)
