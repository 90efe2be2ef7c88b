"""One link to each other broker, for what brokers ask each other about transactions."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from sskafka.replication.cluster_links import Answered
from sskafka.wire.schema import Message

R = TypeVar("R", bound=Message)


class BrokerLink(Protocol):
    def ask(self, request: Message, response_class: type[R], answered: Answered[R]) -> None:
        """`answered` is called once, on the loop that asked: with the response, or with why there is none."""
        ...

    def close(self) -> None: ...


class BrokerTransport(Protocol):
    def link_to(self, broker_id: int) -> BrokerLink: ...


class BrokerLinks:
    """`soon` calls back after the current turn of the loop, so that what a turn brings shares a request."""

    def __init__(self, transport: BrokerTransport, soon: Callable[[Callable[[], None]], object]) -> None:
        self._transport = transport
        self.soon = soon
        self._links: dict[int, BrokerLink] = {}

    def to(self, broker_id: int) -> BrokerLink:
        link = self._links.get(broker_id)
        if link is None:
            link = self._links[broker_id] = self._transport.link_to(broker_id)
        return link

    def close(self) -> None:
        while self._links:
            self._links.popitem()[1].close()
