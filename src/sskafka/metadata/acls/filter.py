"""Filters of DescribeAcls and DeleteAcls, which select ACLs as Apache Kafka's AclBindingFilter does."""

from typing import NamedTuple, Protocol

from sskafka.metadata.acls.binding import AclBinding
from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.errors import ErrorCode, KafkaError


class FilterMessage(Protocol):
    """The fields that DescribeAclsRequest and a filter of DeleteAclsRequest share."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class AclFilter(NamedTuple):
    """A filter of ACLs. A field that is None, or has the code ANY, matches every ACL."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @classmethod
    def from_message(cls, message: FilterMessage) -> "AclFilter":
        """Return the filter of a request. Raises KafkaError if it has an unknown code."""
        _check(ResourceType, message.resource_type_filter, "patternFilter")
        _check(PatternType, message.pattern_type_filter, "patternFilter")
        _check(AclOperation, message.operation, "entryFilter")
        _check(AclPermission, message.permission_type, "entryFilter")
        return cls(
            message.resource_type_filter,
            message.resource_name_filter,
            message.pattern_type_filter,
            message.principal_filter,
            message.host_filter,
            message.operation,
            message.permission_type,
        )

    def matches(self, binding: AclBinding) -> bool:
        return (
            self._matches_pattern(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission in (AclPermission.ANY, binding.permission)
        )

    def _matches_pattern(self, binding: AclBinding) -> bool:
        if self.resource_type not in (ResourceType.ANY, binding.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, binding.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        return binding.covers_name(name) if self.pattern_type == PatternType.MATCH else name == binding.resource_name


def _check(codes: type[ResourceType | PatternType | AclOperation | AclPermission], code: int, part: str) -> None:
    if code == 0 or code not in set(codes):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown {part}.")
