"""ACLs in the words of kafka-acls: what to allow or deny, to whom, on which resources.

    AclRule(AclResources(topics=("orders",)), allow_principals=("alice",), operations=("Read",)).bindings()

An `AclRule` becomes one binding for each combination of principal, host, operation and resource. `producer` and
`consumer` stand for the operations that producers and consumers need.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import product
from typing import NamedTuple, TypeVar

from sskafka.metadata.acls.binding import AclBinding
from sskafka.metadata.acls.filter import AclFilter
from sskafka.model.acl import CLUSTER_NAME, WILDCARD, AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.values import value

_CONFIGS = {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
OPERATIONS_OF_RESOURCE = {
    ResourceType.TOPIC: {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        *_CONFIGS,
    },
    ResourceType.GROUP: {AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE, *_CONFIGS},
    ResourceType.CLUSTER: {
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *_CONFIGS,
    },
    ResourceType.TRANSACTIONAL_ID: {AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT},
    ResourceType.DELEGATION_TOKEN: {AclOperation.DESCRIBE},
    ResourceType.USER: {AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS},
}
"""The operations that a broker checks on resources of each type, besides ALL."""
_PRODUCER = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_TRANSACTIONAL_PRODUCER = (AclOperation.WRITE, AclOperation.DESCRIBE)
_CONSUMER = (AclOperation.READ, AclOperation.DESCRIBE)

C = TypeVar("C", bound=IntEnum)


class AclRuleError(ValueError):
    """The parts of a rule do not make an ACL."""


class ResourcePattern(NamedTuple):
    resource_type: ResourceType
    name: str
    pattern_type: PatternType


def parse_code(codes: type[C], word: str) -> C:
    """Return the code that a word names in any spelling: DescribeConfigs, describe_configs, DESCRIBE-CONFIGS."""
    wanted = word.replace("_", "").replace("-", "").lower()
    for code in codes:
        if code.name.replace("_", "").lower() == wanted and code.value != 0:
            return code
    known = ", ".join(code.name for code in codes if code.value != 0)
    raise AclRuleError(f"{word!r} is not one of {known}")


def parse_principal(text: str) -> str:
    """Return the principal as `User:NAME`; a name alone is a user."""
    return text if ":" in text else f"User:{text}"


@value
class AclResources:
    """The resources that options of kafka-acls name."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    delegation_tokens: tuple[str, ...] = ()
    user_principals: tuple[str, ...] = ()
    cluster: bool = False
    resource_pattern_type: str = "literal"

    def patterns(self) -> list[ResourcePattern]:
        pattern_type = parse_code(PatternType, self.resource_pattern_type)
        named = {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
            ResourceType.DELEGATION_TOKEN: self.delegation_tokens,
            ResourceType.USER: tuple(parse_principal(user) for user in self.user_principals),
        }
        found = [ResourcePattern(kind, name, pattern_type) for kind, names in named.items() for name in names]
        if self.cluster:
            found.append(ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
        return found


@value
class AclRule:
    resources: AclResources
    allow_principals: tuple[str, ...] = ()
    deny_principals: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    """Addresses, or networks in CIDR notation, of the allowed principals; every host if empty."""
    deny_hosts: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    """Every operation if empty."""
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    def bindings(self) -> list[AclBinding]:
        """Return the ACLs of this rule, sorted. Raise AclRuleError if the parts do not make ACLs."""
        if not self.allow_principals and not self.deny_principals:
            raise AclRuleError("name a principal to allow or to deny")
        if self.resources.resource_pattern_type.lower() not in {"literal", "prefixed"}:
            raise AclRuleError("an ACL has a pattern of type literal or prefixed")
        granted = list(self._granted())
        if not granted:
            raise AclRuleError("name a resource: a topic, a group, a transactional id, the cluster, ...")
        who = [
            *product(self.allow_principals, self.allow_hosts or (WILDCARD,), (AclPermission.ALLOW,)),
            *product(self.deny_principals, self.deny_hosts or (WILDCARD,), (AclPermission.DENY,)),
        ]
        return sorted(
            {
                AclBinding(*pattern, parse_principal(principal), host, operation, permission)
                for (pattern, operation), (principal, host, permission) in product(granted, who)
            }
        )

    def _granted(self) -> Iterator[tuple[ResourcePattern, AclOperation]]:
        if self.producer or self.consumer:
            yield from self._convenient()
            return
        operations = [parse_code(AclOperation, word) for word in self.operations] or [AclOperation.ALL]
        for pattern, operation in product(self.resources.patterns(), operations):
            supported = OPERATIONS_OF_RESOURCE[pattern.resource_type]
            if operation not in (AclOperation.ALL, *supported):
                names = ", ".join(sorted(one.name for one in (AclOperation.ALL, *supported)))
                kind = pattern.resource_type.name
                raise AclRuleError(f"{operation.name} does not apply to {kind}; the operations of {kind} are {names}")
            yield pattern, operation

    def _convenient(self) -> Iterator[tuple[ResourcePattern, AclOperation]]:
        named = self.resources
        if self.operations:
            raise AclRuleError("a producer or consumer has its operations: do not name operations, too")
        if self.deny_principals:
            raise AclRuleError("a producer or consumer can only be allowed")
        if not named.topics or (self.consumer and not named.groups):
            raise AclRuleError("a producer needs a topic, a consumer needs a topic and a group")
        if named.cluster or named.delegation_tokens or named.user_principals or (named.groups and not self.consumer):
            raise AclRuleError("a producer has topics and transactional ids, a consumer has topics and groups")
        if self.producer:
            operations = {ResourceType.TOPIC: _PRODUCER, ResourceType.TRANSACTIONAL_ID: _TRANSACTIONAL_PRODUCER}
            yield from self._pairs(operations)
        if self.consumer:
            yield from self._pairs({ResourceType.TOPIC: _CONSUMER, ResourceType.GROUP: (AclOperation.READ,)})
        if self.idempotent:
            yield (
                ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL),
                AclOperation.IDEMPOTENT_WRITE,
            )

    def _pairs(
        self, operations: dict[ResourceType, tuple[AclOperation, ...]]
    ) -> Iterator[tuple[ResourcePattern, AclOperation]]:
        for pattern in self.resources.patterns():
            for operation in operations.get(pattern.resource_type, ()):
                yield pattern, operation


def acl_filters(
    resources: AclResources,
    principals: Sequence[str] = (),
    operations: Sequence[str] = (),
    permission: AclPermission = AclPermission.ANY,
) -> list[AclFilter]:
    """Return filters for the ACLs of these resources, principals and operations. Without names, a filter matches all of
    them."""
    any_pattern = (ResourceType.ANY, None, PatternType.ANY)
    patterns: list[tuple[ResourceType, str | None, PatternType]] = [*resources.patterns()] or [any_pattern]
    who: list[str | None] = [*map(parse_principal, principals)] or [None]
    what = [parse_code(AclOperation, word) for word in operations] or [AclOperation.ANY]
    return [
        AclFilter(*pattern, principal, None, operation, permission)
        for pattern, principal, operation in product(patterns, who, what)
    ]


def exact_filter(binding: AclBinding) -> AclFilter:
    """Return the filter that matches only this ACL."""
    return AclFilter(*binding)
