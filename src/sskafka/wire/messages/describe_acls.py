"""DescribeAcls: list the ACLs that match a filter."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, message, request, response


@message
class DescribeAclsRequest:
    SCHEMA: ClassVar = request(29)

    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Int8 = 3
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message
class AclDescription:
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message
class DescribeAclsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 3
    acls: list[AclDescription] = field(default_factory=list)


@message
class DescribeAclsResponse:
    SCHEMA: ClassVar = response(29)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: list[DescribeAclsResource] = field(default_factory=list)
