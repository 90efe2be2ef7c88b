"""DeleteAcls: remove the ACLs that match filters."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, message, request, response


@message
class DeleteAclsFilter:
    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Int8 = 3
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message
class DeleteAclsRequest:
    SCHEMA: ClassVar = request(31)

    filters: list[DeleteAclsFilter] = field(default_factory=list)


@message
class DeleteAclsMatchingAcl:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message
class DeleteAclsFilterResult:
    error_code: Int16 = 0
    error_message: String | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list)


@message
class DeleteAclsResponse:
    SCHEMA: ClassVar = response(31)

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list)
