"""One access control entry: a principal, from a host, may or may not do an operation on resources of a pattern."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

from sskafka.metadata.records import AccessControlEntryRecord
from sskafka.model.acl import WILDCARD, AclOperation, AclPermission, PatternType
from sskafka.model.ids import Uuid

if TYPE_CHECKING:
    from sskafka.wire.messages.delete_acls import DeleteAclsMatchingAcl

IMPLIES_DESCRIBE = frozenset(
    {AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
)
IMPLIES_DESCRIBE_CONFIGS = frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS})
_NETWORKS_KEPT = 4096


class AclBinding(NamedTuple):
    """An access control entry. Its numbers are codes of model/acl.py."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    """An address, a network in CIDR notation, or `*`."""
    operation: int
    permission: int

    @classmethod
    def of(cls, entry: "AccessControlEntryRecord | DeleteAclsMatchingAcl") -> "AclBinding":
        """Return the binding in a metadata record, or in a response to DeleteAcls."""
        return cls(
            entry.resource_type,
            entry.resource_name,
            entry.pattern_type,
            entry.principal,
            entry.host,
            entry.operation,
            entry.permission_type,
        )

    def to_record(self, acl_id: Uuid) -> AccessControlEntryRecord:
        return AccessControlEntryRecord(
            acl_id,
            self.resource_type,
            self.resource_name,
            self.pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission,
        )

    @property
    def is_deny(self) -> bool:
        return self.permission == AclPermission.DENY

    def covers_name(self, name: str) -> bool:
        """Return whether the pattern applies to the resource `name`."""
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)

    def covers_host(self, host: str) -> bool:
        """`host` is an address as `normal_address` returns it."""
        if self.host in (WILDCARD, host):
            return True
        if "/" in self.host:
            return _is_in_network(host, self.host)
        return normal_address(self.host) == host

    def covers_operation(self, operation: AclOperation) -> bool:
        """Return whether the entry applies to `operation`. Only entries that allow imply other operations."""
        if self.operation in (AclOperation.ALL, operation):
            return True
        if self.is_deny:
            return False
        if operation == AclOperation.DESCRIBE:
            return self.operation in IMPLIES_DESCRIBE
        return operation == AclOperation.DESCRIBE_CONFIGS and self.operation in IMPLIES_DESCRIBE_CONFIGS


@lru_cache(_NETWORKS_KEPT)
def normal_address(text: str) -> str:
    """Return one spelling for every address: IPv6 in its short form, IPv4 in IPv6 as IPv4. Other text is returned."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


@lru_cache(_NETWORKS_KEPT)
def parse_network(text: str) -> IPv4Network | IPv6Network | None:
    """Return the network in CIDR notation (10.1.0.0/16), or None if `text` is none. Host bits may be set."""
    address, _, prefix_length = text.partition("/")
    if not address or not prefix_length.isascii() or not prefix_length.isdigit():
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _is_in_network(host: str, text: str) -> bool:
    network = parse_network(text)
    if network is None:
        return False
    try:
        return ip_address(host) in network
    except ValueError:
        return False
