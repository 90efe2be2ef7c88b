"""Authorization: every check whether a client may do something asks an `Authorizer`.

The connection checks the cluster operation of an API (wire/apis.py) before the handler runs; handlers check topics,
groups and transactional ids (request.py). Everybody may call ApiVersions. acl_rules.py lists what each API checks.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, TypeVar

from sskafka.model.acl import AclOperation, ResourceType

T = TypeVar("T")


class RequestContext(Protocol):
    """The client and API of a request: a request of the Kafka protocol, or of another server of this broker."""

    @property
    def principal(self) -> str:
        """For example `User:alice`; `User:ANONYMOUS` without authentication."""
        ...

    @property
    def host(self) -> str:
        """The address of the client as text."""
        ...

    @property
    def client_listener(self) -> str:
        """The listener to which the client is connected, HTTP or ADR."""
        ...

    @property
    def api_name(self) -> str: ...


FailedLoginRecorder: TypeAlias = Callable[[str, str, str, str], None]
"""Called when a client could not authenticate: listener, address of the client, user name that it has given, reason."""


def ignore_failed_login(listener: str, host: str, user: str, reason: str) -> None:
    """Record nothing: there is no audit log."""


class Authorizer(Protocol):
    is_configured: bool
    """Whether there are ACLs to manage: False while `authorizer.class.name` is not set."""

    def allows(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool: ...

    def would_allow(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Decide like `allows`, without logging, to filter lists: responses omit what the client may not see."""
        ...

    def allows_some(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether the client may do the operation on some resource of the type."""
        ...


class AllowAll:
    """Allows everything, as Kafka does while no authorizer is configured."""

    is_configured = False

    def allows(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return True

    would_allow = allows

    def allows_some(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        return True


OPERATIONS_OF = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
}
"""The operations that responses list as authorized operations of a resource."""
AUTHORIZED_OPERATIONS_OMITTED = -(2**31)  # value in responses to clients that did not ask for authorized operations


def divided(items: Iterable[T], may: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Split items into those that are allowed, and the others."""
    allowed: list[T] = []
    refused: list[T] = []
    for item in items:
        (allowed if may(item) else refused).append(item)
    return allowed, refused
