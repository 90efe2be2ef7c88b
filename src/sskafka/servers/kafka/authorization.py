"""The one place that decides who may do what.

Everything passes `Authorizer.allows`: the cluster operation of an API (wire/apis.py) before its handler runs, and every
other resource in the handler that touches it. ApiVersions alone is open to all.
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
    """What Kafka does while no authorizer is configured."""

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
NOT_ASKED = -(2**31)  # what responses carry when the client did not ask for its rights


def divided(items: Iterable[T], may: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """What is allowed, and the rest."""
    allowed: list[T] = []
    refused: list[T] = []
    for item in items:
        (allowed if may(item) else refused).append(item)
    return allowed, refused
