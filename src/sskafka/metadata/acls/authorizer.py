"""Decides whether a principal may do something: the rules of Apache Kafka's StandardAuthorizer.

    super user                              -> allowed
    the ACLs have not been read yet         -> AuthorizerNotReadyError
    an ACL that applies denies              -> denied
    an ACL that applies allows              -> allowed
    no pattern applies to the resource      -> `allow.everyone.if.no.acl.found`
    otherwise                               -> denied

Decisions are kept until the ACLs change. The image keeps the same mapping of ACLs until it replays a record of one, so
`apply` recognizes a change by identity.
"""

from collections.abc import Iterable, Mapping

from sskafka.metadata.acls.binding import AclBinding, normal_address
from sskafka.metadata.acls.index import AclIndex
from sskafka.metadata.records import AccessControlEntryRecord
from sskafka.model.acl import (
    WILDCARD,
    AclOperation,
    AclPermission,
    AuthorizerNotReadyError,
    PatternType,
    ResourceType,
)
from sskafka.model.ids import Uuid

EVERY_PRINCIPAL = "User:*"
DECISIONS_KEPT_MAX = 50_000
_ANY_RESOURCE = "\x00any"  # no resource has this name; stands for decisions about a whole type
_PROBED_NAME = "hardcode"  # Kafka asks for this name to find out whether a principal may do something everywhere


class StandardAuthorizer:
    def __init__(self, super_users: Iterable[str], *, allow_everyone_if_no_acl_found: bool) -> None:
        self._super_users = frozenset(super_users)
        self._allows_without_acl = allow_everyone_if_no_acl_found
        self._records: Mapping[Uuid, AccessControlEntryRecord] | None = None
        self._index = AclIndex()
        self._decisions: dict[tuple[str, str, int, int, str], bool] = {}

    @property
    def is_ready(self) -> bool:
        return self._records is not None

    def apply(self, records: Mapping[Uuid, AccessControlEntryRecord]) -> None:
        """Use these ACLs from now on. The mapping must not change later."""
        known = self._records
        if records is known:
            return
        known = known or {}
        for acl_id in known.keys() - records.keys():
            self._index.remove(AclBinding.of(known[acl_id]))
        for acl_id in records.keys() - known.keys():
            self._index.add(AclBinding.of(records[acl_id]))
        self._records = records
        self._decisions.clear()

    def allows(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Decide by the ACLs. Raises AuthorizerNotReadyError before the first `apply`, except for super users."""
        key = (principal, host, operation, resource_type, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decide(principal, normal_address(host), operation, resource_type, name)
            self._keep(key, allowed)
        return allowed

    def allows_some(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether there can be a resource of the type on which the principal may do the operation.

        Raises AuthorizerNotReadyError before the first `apply`, except for super users."""
        key = (principal, host, operation, resource_type, _ANY_RESOURCE)
        allowed = self._decisions.get(key)
        if allowed is None:
            address = normal_address(host)
            allowed = self._decide(
                principal, address, operation, resource_type, _PROBED_NAME
            ) or self._allows_some_pattern(principal, address, operation, resource_type)
            self._keep(key, allowed)
        return allowed

    def _keep(self, key: tuple[str, str, int, int, str], allowed: bool) -> None:
        if len(self._decisions) >= DECISIONS_KEPT_MAX:
            self._decisions.clear()
        self._decisions[key] = allowed

    def _decide(
        self, principal: str, address: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        if principal in self._super_users:
            return True
        if self._records is None:
            raise AuthorizerNotReadyError(f"{principal} may not do anything before the ACLs are read")
        has_acls = is_allowed = False
        for by_principal in self._index.of_resource(resource_type, name):
            has_acls = True
            for candidate in (principal, EVERY_PRINCIPAL):
                for binding in by_principal.get(candidate, ()):
                    if binding.covers_host(address) and binding.covers_operation(operation):
                        if binding.is_deny:
                            return False
                        is_allowed = True
        return is_allowed if has_acls else self._allows_without_acl

    def _allows_some_pattern(
        self, principal: str, address: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        patterns: dict[tuple[int, int], set[str]] = {
            (permission, pattern_type): set()
            for permission in (AclPermission.ALLOW, AclPermission.DENY)
            for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        }
        for candidate in (principal, EVERY_PRINCIPAL):
            for binding in self._index.of_type(resource_type, candidate):
                if binding.operation in (operation, AclOperation.ALL) and binding.covers_host(address):
                    patterns[binding.permission, binding.pattern_type].add(binding.resource_name)
        denied_names = patterns[AclPermission.DENY, PatternType.LITERAL]
        denied_prefixes = patterns[AclPermission.DENY, PatternType.PREFIXED]
        if WILDCARD in denied_names:
            return False
        names = patterns[AclPermission.ALLOW, PatternType.LITERAL]
        if WILDCARD in names:
            return True
        allowed = (names - denied_names) | patterns[AclPermission.ALLOW, PatternType.PREFIXED]
        return any(not _begins_with_one_of(name, denied_prefixes) for name in allowed)


def _begins_with_one_of(name: str, prefixes: set[str]) -> bool:
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))


def parse_super_users(text: str) -> frozenset[str]:
    """Return the principals of `super.users`, which semicolons separate."""
    return frozenset(user for part in text.split(";") if (user := part.strip()))
