"""FindCoordinator: the coordinator of a group, a transactional id or a share partition."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, between, ignorable, message, request, response, since, until


@message
class FindCoordinatorRequest:
    SCHEMA: ClassVar = request(10)

    key: Annotated[String, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    coordinator_keys: Annotated[list[String], since(4)] = field(default_factory=list)


@message
class Coordinator:
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@message
class FindCoordinatorResponse:
    SCHEMA: ClassVar = response(10)

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[String | None, between(1, 3), ignorable] = ""
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[String, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = field(default_factory=list)
