"""Connections to leaders over `sskafka.client`, opened when needed and reopened when lost.

The requests of one link use one connection, in order. Each request is a short-lived task of the broker.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect
from sskafka.client.errors import ClientError, ProtocolError
from sskafka.replication.cluster_links import Answered
from sskafka.wire.messages.fetch import FetchRequest, FetchResponse
from sskafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from sskafka.wire.schema import Message

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Message)
AddressOf: TypeAlias = Callable[[int], Address | None]
"""Returns a broker's inter-broker address, or None while the metadata does not have it."""
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]

BROKER_EPOCH_FROM = 15
"""The first Fetch version in which followers send their broker epoch."""


class LeaderConnections:
    """A ReplicaTransport over sockets."""

    def __init__(self, address_of: AddressOf, options: ConnectionOptions, spawn: Spawn) -> None:
        self._address_of = address_of
        self._options = options
        self._spawn = spawn

    def link_to(self, broker_id: int) -> "LeaderConnection":
        return LeaderConnection(lambda: self._address_of(broker_id), self._options, self._spawn)


class LeaderConnection:
    def __init__(self, address: Callable[[], Address | None], options: ConnectionOptions, spawn: Spawn) -> None:
        self._address = address
        self._options = options
        self._spawn = spawn
        self._connection: BrokerConnection | None = None
        self._connecting = asyncio.Lock()
        self._failures = 0
        self._is_closed = False

    def fetch(self, request: FetchRequest, answered: Answered[FetchResponse]) -> None:
        self._spawn(self._exchange(request, FetchResponse, answered))

    def list_offsets(self, request: ListOffsetsRequest, answered: Answered[ListOffsetsResponse]) -> None:
        self._spawn(self._exchange(request, ListOffsetsResponse, answered))

    def ask(self, request: Message, response_class: type[R], answered: Answered[R]) -> None:
        """Send any inter-broker request."""
        self._spawn(self._exchange(request, response_class, answered))

    def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._connection.abort("the link was closed")

    async def _exchange(self, request: Message, response_class: type[R], answered: Answered[R]) -> None:
        outcome: R | Exception
        try:
            connection = await self._connected()
            outcome = await connection.request(request, response_class)
        except Exception as error:  # any failure: the caller waits for the answer and may have more requests
            outcome = error
            self._hang_up()
            if not isinstance(error, ClientError | OSError):
                log.exception("unexpected error in a request to another broker")
        if not self._is_closed:
            answered(outcome)

    async def _connected(self) -> BrokerConnection:
        async with self._connecting:
            if self._connection is None or not self._connection.is_open:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> BrokerConnection:
        address = self._address()
        if address is None or self._is_closed:
            raise ConnectionError("the metadata has no address for the broker")
        self._failures += 1
        connection = await connect(address, self._options, failures=self._failures - 1)
        self._failures = 0
        if connection.version_for(FetchRequest) < BROKER_EPOCH_FROM:
            connection.abort("unsupported version")
            raise ProtocolError(f"the broker at {address} does not support the required Fetch version")
        return connection

    def _hang_up(self) -> None:
        """Close the connection, so that a late answer is not taken for the answer to another request."""
        if self._connection is not None:
            self._connection.abort("a request failed")
            self._connection = None
