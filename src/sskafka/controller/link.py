"""The way from this node to the active controller, wherever that is.

    ask(request) -> this node leads: decided here          -> answer
                    another one leads: sent there
                    nobody does, or it has just changed: a short pause, then again, until the request's time is up

What brokers ask on their own account (registration, heartbeats, AlterPartition, AllocateProducerIds) travels as it is.
What a client asked this broker for (the forwarded APIs of wire/apis.py) travels in an Envelope: a node that receives
one and is not the controller answers NOT_CONTROLLER instead of forwarding it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from sskafka.client.connection import Address, ConnectionOptions
from sskafka.client.errors import ClientError, UnsupportedApiError
from sskafka.controller.envelopes import open_answer, put_into_envelope
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.quorum.peer_network import NodeConnection
from sskafka.raft.voters import NO_NODE
from sskafka.runtime.clock import Clock
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.messages.envelope import EnvelopeResponse
from sskafka.wire.schema import Message

_log = logging.getLogger(__name__)

RETRY_PAUSE_MS = 50


class Leaders(Protocol):
    @property
    def leader_id(self) -> int:
        """Who leads the quorum as far as this node knows, -1 for nobody."""
        ...

    async def leader_changed(self, timeout_s: float) -> None:
        """Returns when that changes, or when the time is up."""
        ...


class ControllerLink:
    """One connection of its own, so that what is urgent does not wait behind what is slow."""

    def __init__(
        self,
        node_id: int,
        leaders: Leaders,
        decide_here: Callable[[Message], Awaitable[Any]],
        addresses: Mapping[int, Address],
        options: ConnectionOptions,
        clock: Clock,
        socket_timeout_ms: int = 30_000,
    ) -> None:
        """`socket_timeout_ms`: a controller that takes longer than this for one request is asked anew."""
        self._socket_timeout_ms = socket_timeout_ms
        self._node_id = node_id
        self._leaders = leaders
        self._decide_here = decide_here
        self._connections = {node: NodeConnection(address, options) for node, address in addresses.items()}
        self._clock = clock

    async def ask(self, request: Message, timeout_ms: int) -> Any:
        """The controller's answer. Raises KafkaError when there was none in time, with the reason."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        problem = "no controller is elected"
        while (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            try:
                return await self._ask_leader(request, left_ms)
            except UnsupportedApiError as error:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
            except ClientError as error:
                problem = str(error)
            except TimeoutError:
                problem = "this node leads, but no majority has confirmed the change"
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
                problem = error.message or problem
            await self._leaders.leader_changed(RETRY_PAUSE_MS / 1000)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no answer from the controller in {timeout_ms} ms: {problem}")

    async def _ask_leader(self, request: Message, timeout_ms: float) -> Any:
        leader_id = self._leaders.leader_id
        if leader_id == self._node_id:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._decide_here(request)
        if leader_id == NO_NODE:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return await self._send(self._connections[leader_id], request, timeout_ms)

    async def _send(self, node: NodeConnection, request: Message, timeout_ms: float) -> Any:
        timeout_ms = min(timeout_ms, self._socket_timeout_ms)
        connection = await node.get()
        key = request.SCHEMA.key
        assert key is not None
        try:
            api = API_BY_KEY[key]
            if not api.forwarded:
                answer = await connection.request(request, api.response_class(), timeout_ms=int(timeout_ms) or 1)
                if answer.error_code == ErrorCode.NOT_CONTROLLER:
                    raise KafkaError(ErrorCode.NOT_CONTROLLER)
                return answer
            version = connection.version_for(type(request))
            envelope = put_into_envelope(request, version)
            opened = await connection.request(envelope, EnvelopeResponse, timeout_ms=int(timeout_ms) or 1)
            return open_answer(opened, key, version)
        except ClientError:
            node.drop()
            raise

    def close(self) -> None:
        for connection in self._connections.values():
            connection.drop()
