"""The one place that decides who may do what.

Everything passes `Authorizer.allows`: an API on the cluster before its handler runs, which `Registry.add` is told, and
every topic in the handler that touches it. ApiVersions alone is open to all. Codes are Kafka's ACL numbers.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Protocol, TypeVar

T = TypeVar("T")


class Operation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceType(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


CLUSTER_NAME = "kafka-cluster"
ANONYMOUS = "User:ANONYMOUS"


class Authorizer(Protocol):
    def allows(self, principal: str, operation: Operation, resource_type: ResourceType, name: str) -> bool: ...


class AllowAll:
    """What Kafka does while no authorizer is configured."""

    def allows(self, principal: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return True


TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
NOT_ASKED = -(2**31)  # what responses carry when the client did not ask for its rights


def divided(items: Iterable[T], may: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """What is allowed, and the rest."""
    allowed: list[T] = []
    refused: list[T] = []
    for item in items:
        (allowed if may(item) else refused).append(item)
    return allowed, refused
