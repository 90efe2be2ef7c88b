"""The link from this node to another one: a connection, opened by the first request and again after it was lost.

Every request between nodes uses a link: replica fetches, transaction markers, Raft, requests to the active controller.

- The requests of a link share one connection, and the other node answers them in order. A Fetch that waits for records
  there delays the requests behind it: a caller that sends both long polls and urgent requests uses two links.
- A failed request closes the connection. The outcome of the other requests on it is unknown.
- The timeout to connect grows with each failed attempt (`ConnectionOptions`).
- A link does not repeat requests. Only its user knows whether a request may be repeated and whether the same node is
  still the right one. `RequestQueue` has the in-flight window and the pause of those that send batches.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Protocol, TypeAlias, TypeVar

from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect
from sskafka.client.errors import AuthenticationFailedError, BrokerUnavailableError, ClientError, UnsupportedApiError
from sskafka.model.errors import KafkaError
from sskafka.wire.schema import Message

__all__ = [
    "Address",
    "Answered",
    "BrokerLink",
    "BrokerLinks",
    "CallLater",
    "ConnectionOptions",
    "Link",
    "LinkTo",
    "RequestQueue",
    "TaskLink",
]

_log = logging.getLogger(__name__)

REFUSAL_LOG_S = 60.0

T = TypeVar("T")
R = TypeVar("R", bound=Message)
Answered: TypeAlias = Callable[[R | Exception], None]
CallLater: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Calls a function after a delay in seconds, like `call_later` of an event loop."""


class Link(Protocol):
    """The interface of a link. Simulations implement it without a network."""

    def ask(self, request: Message, response_class: type[R], answered: Answered[R]) -> None:
        """Send the request. `answered` is called once, later, on the event loop of the caller.

        Its argument is the response, or the exception that explains why there is none. A request without a response
        may have been carried out."""
        ...

    def close(self) -> None:
        """Close the link for good. Pending requests get no answer."""
        ...


L = TypeVar("L", bound=Link)
LinkTo: TypeAlias = Callable[[int], L]
"""Returns a new link to the node with this id; the link connects when it is used."""


class TaskLink(ABC):
    """A link for which each request is a task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def request(self, message: Message, response_class: type[R]) -> R:
        """Send `message` and return its response."""

    def ask(self, request: Message, response_class: type[R], answered: Answered[R]) -> None:
        task = asyncio.get_running_loop().create_task(self._exchange(request, response_class, answered))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _exchange(self, request: Message, response_class: type[R], answered: Answered[R]) -> None:
        outcome: R | Exception
        try:
            outcome = await self.request(request, response_class)
        except Exception as error:  # after any error the caller must get an answer
            outcome = error
            if not isinstance(error, ClientError | KafkaError | OSError):
                _log.exception("unexpected error in a request to another node")
        answered(outcome)


class BrokerLink(TaskLink):
    """A link to one node over a socket.

    `address` returns None while the address of the node is not known. `versions_min` has the oldest usable version of
    requests; a node that does not support it counts as unavailable."""

    def __init__(
        self,
        address: Callable[[], Address | None],
        options: ConnectionOptions,
        versions_min: Mapping[type[Message], int] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._address = address
        self._options = options
        self._versions_min = versions_min
        self._connection: BrokerConnection | None = None
        self._connecting = asyncio.Lock()
        self._failures = 0
        self._silent_until_s = 0.0
        self._is_closed = False

    async def request(self, message: Message, response_class: type[R], *, timeout_ms: int | None = None) -> R:
        """Send `message` and return its response; raise ClientError if there is none."""
        connection = await self._connected()
        try:
            return await connection.request(message, response_class, timeout_ms=timeout_ms)
        except Exception:
            connection.abort("a request failed")
            raise

    def ask(self, request: Message, response_class: type[R], answered: Answered[R]) -> None:
        """Send the request at once over a connection that is open and not congested, otherwise in a task."""
        connection = self._connection
        if connection is None or not connection.is_open or not connection.is_writable or self._is_closed:
            super().ask(request, response_class, answered)
            return

        def received(outcome: R | Exception) -> None:
            if self._is_closed:
                return
            if isinstance(outcome, Exception):
                connection.abort("a request failed")
            answered(outcome)

        try:
            connection.ask(request, response_class, received)
        except Exception:  # the task reports the same error, but later, as callers expect
            super().ask(request, response_class, answered)

    async def version_for(self, request_class: type[Message]) -> int:
        """Return the newest version of a request that both sides support."""
        return (await self._connected()).version_for(request_class)

    def drop(self) -> None:
        """Close the connection after an invalid response. The next request opens another one."""
        if self._connection is not None:
            self._connection.abort("a response was not valid")

    def close(self) -> None:
        self._is_closed = True
        super().close()
        if self._connection is not None:
            self._connection.abort("the link was closed")

    async def _connected(self) -> BrokerConnection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        async with self._connecting:
            if self._connection is None or not self._connection.is_open:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> BrokerConnection:
        address = self._address()
        if address is None or self._is_closed:
            raise BrokerUnavailableError("the address of the node is not known")
        self._failures += 1
        try:
            connection = await connect(address, self._options, failures=self._failures - 1)
        except AuthenticationFailedError as error:
            self._note_refusal(error)
            raise
        self._failures = 0
        for request_class, oldest in self._versions_min.items():
            if connection.version_for(request_class) < oldest:
                connection.abort("unsupported version")
                raise UnsupportedApiError(f"{address} does not support {request_class.__name__} version {oldest}")
        return connection

    def _note_refusal(self, error: AuthenticationFailedError) -> None:
        """Log that the other node refuses this one, at intervals: it will do so until a setting is changed."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._silent_until_s:
            self._silent_until_s = now_s + REFUSAL_LOG_S
            _log.error("the login of this node was refused: %s", error)


class BrokerLinks(Generic[L]):
    """One link to each node, created when it is first needed."""

    def __init__(self, link_to: LinkTo[L]) -> None:
        self._link_to = link_to
        self._links: dict[int, L] = {}

    def to(self, node_id: int) -> L:
        link = self._links.get(node_id)
        if link is None:
            link = self._links[node_id] = self._link_to(node_id)
        return link

    def close(self) -> None:
        while self._links:
            self._links.popitem()[1].close()


class RequestQueue(ABC, Generic[T, R]):
    """A queue of items for one other node: one request is in flight; items added in the meantime share the next one.

    The first request leaves after the current turn of the event loop, which may add more items."""

    def __init__(self, link: Link, call_later: CallLater, response_class: type[R]) -> None:
        self._link = link
        self._call_later = call_later
        self._response_class = response_class
        self._waiting: list[T] = []
        self._is_busy = False
        """Whether a request is in flight, or about to be sent."""
        self._is_stopped = False

    def add(self, item: T) -> None:
        self._waiting.append(item)
        if not self._is_busy:
            self._is_busy = True
            self._call_later(0, self._send)

    def clear(self) -> None:
        """Drop what was not sent yet."""
        self._waiting.clear()

    def stop(self) -> None:
        """Send nothing more, and ignore the response of the request in flight."""
        self._is_stopped = True
        self.clear()

    def _delay_s(self) -> float:
        """Return how long to wait until a request can be sent; 0 if it can be sent now."""
        return 0.0

    @abstractmethod
    def _select(self, waiting: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
        """Return the items of the next request, and those that wait for a later one. Others are dropped."""

    @abstractmethod
    def _request(self, items: Sequence[T]) -> Message: ...

    @abstractmethod
    def _answered(self, items: Sequence[T], outcome: R | Exception) -> float:
        """Handle the response. Return the pause before the next request, in seconds."""

    def _send(self) -> None:
        if self._is_stopped:
            return
        delay_s = self._delay_s()
        if delay_s:
            self._call_later(delay_s, self._send)
            return
        items, rest = self._select(self._waiting)
        self._waiting = list(rest)
        self._is_busy = bool(items)
        if items:
            request = self._request(items)
            self._link.ask(request, self._response_class, lambda outcome: self._received(items, outcome))

    def _received(self, items: Sequence[T], outcome: R | Exception) -> None:
        if self._is_stopped:
            return
        pause_s = self._answered(items, outcome)
        if pause_s:
            self._call_later(pause_s, self._send)
        else:
            self._send()
