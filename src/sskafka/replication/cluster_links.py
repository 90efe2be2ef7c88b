"""How the replicas of a broker reach the rest of the cluster: what a network, real or simulated, has to offer.

Answers come by callback, on the loop that asked, exactly once: with the response, or with the exception that tells
why there is none. Nothing is promised about a request without an answer: it may have been carried out.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from sskafka.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from sskafka.wire.messages.fetch import FetchRequest, FetchResponse
from sskafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

R = TypeVar("R")
Answered: TypeAlias = Callable[[R | Exception], None]
CallLater: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Seconds, and what to call then; as `call_later` of a loop."""


class LeaderLink(Protocol):
    """One connection to one broker, made anew when it is lost; requests are answered in their order."""

    def fetch(self, request: FetchRequest, answered: Answered[FetchResponse]) -> None: ...

    def list_offsets(self, request: ListOffsetsRequest, answered: Answered[ListOffsetsResponse]) -> None: ...

    def close(self) -> None:
        """Requests under way are not answered any more."""
        ...


class ReplicaTransport(Protocol):
    def link_to(self, broker_id: int) -> LeaderLink:
        """A connection of its own for the caller; nothing is sent yet."""
        ...


class ControllerChannel(Protocol):
    def alter_partition(self, request: AlterPartitionRequest, answered: Answered[AlterPartitionResponse]) -> None:
        """To whoever is the active controller now."""
        ...


class ClusterLinks(NamedTuple):
    transport: ReplicaTransport
    controller: ControllerChannel
    call_later: CallLater
    broker_epoch: Callable[[], int]
    """With which this broker is registered; -1 before it is."""
