"""A request as handlers see it: its connection, its header, its body, and its response slot."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from sskafka.model.acl import AclOperation, ResourceType
from sskafka.servers.kafka.authorization import (
    CLUSTER_NAME,
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    TOPIC_OPERATIONS,
)
from sskafka.storage.file_slice import FileSlice

if TYPE_CHECKING:
    from sskafka.servers.kafka.connection import Connection
    from sskafka.servers.kafka.response_slot import ResponseSlot

Part: TypeAlias = bytes | FileSlice
Response: TypeAlias = bytes | list[Part]
"""A whole response frame, size prefix included; file slices in it are read only when the socket takes them."""


class Request:
    """`frame` is a view into a buffer that the next request overwrites: it may be used until the handler returns."""

    __slots__ = ("client_id", "connection", "correlation_id", "frame", "position", "received_ns", "version")

    def __init__(
        self,
        connection: "Connection",
        version: int,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        position: int,
        received_ns: int,
    ) -> None:
        self.connection = connection
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.frame = frame
        self.position = position
        self.received_ns = received_ns

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    def park(self) -> "ResponseSlot":
        """Reserve the position of this request's response. The handler returns None and completes the slot later."""
        return self.connection.reserve(self)

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        connection = self.connection
        return connection.authorizer.allows(connection.principal, operation, resource_type, name)

    def rights(self, resource_type: ResourceType, name: str, operations: Iterable[AclOperation]) -> int:
        """Return the allowed operations as a bit field; the bit number is the number of the operation."""
        return sum(1 << operation for operation in operations if self.may(operation, resource_type, name))

    def may_on_topic(self, operation: AclOperation, topic: str) -> bool:
        connection = self.connection  # the same as `may`, inlined: every fetch checks each partition
        return connection.authorizer.allows(connection.principal, operation, ResourceType.TOPIC, topic)

    def may_on_cluster(self, operation: AclOperation) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_on_group(self, operation: AclOperation, group_id: str) -> bool:
        return self.may(operation, ResourceType.GROUP, group_id)

    def may_on_transactional_id(self, operation: AclOperation, transactional_id: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def rights_on_topic(self, topic: str) -> int:
        return self.rights(ResourceType.TOPIC, topic, TOPIC_OPERATIONS)

    def rights_on_group(self, group_id: str) -> int:
        return self.rights(ResourceType.GROUP, group_id, GROUP_OPERATIONS)

    def rights_on_cluster(self) -> int:
        return self.rights(ResourceType.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS)
