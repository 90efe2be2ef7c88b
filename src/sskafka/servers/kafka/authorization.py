"""Authorization: every check whether a principal may do something calls `Authorizer.allows`.

The connection checks the cluster operation of an API (wire/apis.py) before the handler runs; handlers check topics,
groups and transactional ids. Everybody may call ApiVersions.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from sskafka.model.acl import AclOperation, ResourceType

T = TypeVar("T")


CLUSTER_NAME = "kafka-cluster"
ANONYMOUS = "User:ANONYMOUS"


class Authorizer(Protocol):
    def allows(self, principal: str, operation: AclOperation, resource_type: ResourceType, name: str) -> bool: ...


class AllowAll:
    """Allows everything, as Kafka does while no authorizer is configured."""

    def allows(self, principal: str, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return True


TOPIC_OPERATIONS = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
GROUP_OPERATIONS = (
    AclOperation.READ,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
NOT_ASKED = -(2**31)  # value in responses to clients that did not ask for authorized operations


def divided(items: Iterable[T], may: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Split items into those that are allowed, and the others."""
    allowed: list[T] = []
    refused: list[T] = []
    for item in items:
        (allowed if may(item) else refused).append(item)
    return allowed, refused
