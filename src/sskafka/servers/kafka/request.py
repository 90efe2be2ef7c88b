"""A request as handlers see it: its connection, its header, its body, and its response slot."""

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sskafka.model.acl import CLUSTER_NAME, AclOperation, Caller, ResourceType
from sskafka.model.native import mypyc_attr
from sskafka.servers.kafka.authorization import OPERATIONS_OF, Authorizer
from sskafka.storage.file_slice import FileSlice
from sskafka.wire.apis import API_BY_KEY

if TYPE_CHECKING:
    from sskafka.servers.kafka.long_requests import LongRequest, Steps
    from sskafka.servers.kafka.response_slot import ResponseSlot


class RequestConnection(Protocol):
    """What requests and their handlers use of a connection."""

    authorizer: Authorizer
    principal: str
    host: str
    peer: str
    client_listener: str
    is_token_authenticated: bool
    closed: bool
    software: tuple[str, str]

    @property
    def listener_name(self) -> str: ...

    def reserve(self, request: "Request") -> "ResponseSlot": ...

    def take_frame(self, request: "Request") -> "LongRequest": ...

    def begin_long_request(self, request: "LongRequest", steps: "Steps", *, alone: bool = False) -> None: ...

    def hold(self) -> None: ...

    def release(self) -> None: ...

    def count_throttling(self, api_key: int, throttle_ms: int) -> None: ...

    def refuse(self, reason: str) -> None: ...

    def close(self) -> None: ...


class FetchQuota(Protocol):
    """How much a client may fetch now."""

    throttle_ms: int
    """How long the client must wait, as far as responses have been counted."""

    @property
    def max_bytes(self) -> int:
        """The largest response that never exceeds the quota."""
        ...

    def is_exceeded_by(self, size_bytes: int, *, must_be_sent: bool) -> bool:
        """Count a response. Return whether the client must get an empty response instead, which is not counted.

        `must_be_sent`: the response is only counted."""
        ...


Part: TypeAlias = bytes | FileSlice
Response: TypeAlias = bytes | list[Part]
"""A whole response frame, size prefix included; file slices in it are read only when the socket takes them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Request:
    """`frame` is a view into a buffer that the next request overwrites: it may be used until the handler returns."""

    __slots__ = (
        "api_key",
        "client_id",
        "connection",
        "correlation_id",
        "fetch_quota",
        "frame",
        "position",
        "received_ns",
        "version",
    )

    def __init__(
        self,
        connection: RequestConnection,
        version: int,
        correlation_id: int,
        client_id: str | None,
        frame: memoryview,
        position: int,
        received_ns: int,
        api_key: int,
    ) -> None:
        self.connection = connection
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.frame = frame
        self.position = position
        self.received_ns = received_ns
        self.api_key = api_key
        self.fetch_quota: FetchQuota | None = None
        """What the client may fetch, if it has a quota."""

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    @property
    def client_listener(self) -> str:
        return self.connection.client_listener

    @property
    def principal(self) -> str:
        return self.connection.principal

    @property
    def host(self) -> str:
        return self.connection.host

    @property
    def caller(self) -> Caller:
        return Caller(self.principal, self.host, self.client_id or "", self.is_token_authenticated)

    @property
    def is_token_authenticated(self) -> bool:
        """Whether the client has logged in with a delegation token."""
        return self.connection.is_token_authenticated

    @property
    def api_name(self) -> str:
        return API_BY_KEY[self.api_key].name

    def mute(self, throttle_ms: int) -> None:
        """Read no further request of this connection for this time."""
        self.connection.hold()
        self.connection.count_throttling(self.api_key, throttle_ms)
        asyncio.get_running_loop().call_later(throttle_ms / 1000, self.connection.release)

    def park(self) -> "ResponseSlot":
        """Reserve the position of this request's response. The handler returns None and completes the slot later."""
        return self.connection.reserve(self)

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return self.connection.authorizer.allows(self, operation, resource_type, name)

    def may_on_topic(self, operation: AclOperation, topic: str) -> bool:
        return self.connection.authorizer.allows(self, operation, ResourceType.TOPIC, topic)

    def may_on_cluster(self, operation: AclOperation) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_on_group(self, operation: AclOperation, group_id: str) -> bool:
        return self.may(operation, ResourceType.GROUP, group_id)

    def may_on_transactional_id(self, operation: AclOperation, transactional_id: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def may_on_some_topic(self, operation: AclOperation) -> bool:
        return self.connection.authorizer.allows_some(self, operation, ResourceType.TOPIC)

    # -- lists that omit what the client may not see: the client did not request these resources, so nothing is logged

    def may_see(self, resource_type: ResourceType, name: str, operation: AclOperation = AclOperation.DESCRIBE) -> bool:
        return self.connection.authorizer.would_allow(self, operation, resource_type, name)

    def rights(self, resource_type: ResourceType, name: str) -> int:
        """Return the allowed operations as a bit field; the bit number is the number of the operation."""
        would_allow = self.connection.authorizer.would_allow
        return sum(
            1 << operation
            for operation in OPERATIONS_OF[resource_type]
            if would_allow(self, operation, resource_type, name)
        )

    def rights_on_topic(self, topic: str) -> int:
        return self.rights(ResourceType.TOPIC, topic)

    def rights_on_group(self, group_id: str) -> int:
        return self.rights(ResourceType.GROUP, group_id)

    def rights_on_cluster(self) -> int:
        """Return the allowed operations on the cluster: none for clients that may not describe it, as in Kafka."""
        if not self.may_on_cluster(AclOperation.DESCRIBE):
            return 0
        return self.rights(ResourceType.CLUSTER, CLUSTER_NAME)
