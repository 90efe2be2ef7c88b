"""The connections of a broker's replicas to the rest of the cluster: the interface of a real or simulated network.

An answer arrives by callback, on the event loop of the caller, exactly once: with the response, or with the exception
that explains why there is none. A request without an answer may have been carried out.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from sskafka.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from sskafka.wire.messages.fetch import FetchRequest, FetchResponse
from sskafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

R = TypeVar("R")
Answered: TypeAlias = Callable[[R | Exception], None]
CallLater: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Seconds, and the function to call then; like `call_later` of an event loop."""


class LeaderLink(Protocol):
    """One connection to one broker, reopened when it is lost. Responses arrive in the order of the requests."""

    def fetch(self, request: FetchRequest, answered: Answered[FetchResponse]) -> None: ...

    def list_offsets(self, request: ListOffsetsRequest, answered: Answered[ListOffsetsResponse]) -> None: ...

    def close(self) -> None:
        """Close the connection. Pending requests get no answer."""
        ...


class ReplicaTransport(Protocol):
    def link_to(self, broker_id: int) -> LeaderLink:
        """Return a separate connection for the caller. Nothing is sent yet."""
        ...


class ControllerChannel(Protocol):
    def alter_partition(self, request: AlterPartitionRequest, answered: Answered[AlterPartitionResponse]) -> None:
        """Send the request to the active controller."""
        ...


class ClusterLinks(NamedTuple):
    transport: ReplicaTransport
    controller: ControllerChannel
    call_later: CallLater
    broker_epoch: Callable[[], int]
    """The broker epoch of this broker's registration, -1 before it is registered."""
