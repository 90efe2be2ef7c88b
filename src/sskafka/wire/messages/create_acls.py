"""CreateAcls: add ACLs."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, message, request, response


@message
class AclCreation:
    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Int8 = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message
class CreateAclsRequest:
    SCHEMA: ClassVar = request(30)

    creations: list[AclCreation] = field(default_factory=list)


@message
class AclCreationResult:
    error_code: Int16 = 0
    error_message: String | None = ""


@message
class CreateAclsResponse:
    SCHEMA: ClassVar = response(30)

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = field(default_factory=list)
