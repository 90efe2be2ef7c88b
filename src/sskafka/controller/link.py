"""The link from this node to the active controller, on whichever node it is.

    ask(request) -> this node leads: decided here            -> answer
                    another node leads: sent to that node    -> answer
                    no node leads, or the leader has changed: retried after a short pause until the request times out

A broker sends its own requests (registration, heartbeats, AlterPartition, AllocateProducerIds) as they are. Requests of
clients (the forwarded APIs of wire/apis.py) are sent in an Envelope: a node that receives one and is not the controller
answers NOT_CONTROLLER instead of forwarding it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sskafka.client.broker_link import BrokerLink, BrokerLinks, LinkTo
from sskafka.client.errors import ClientError, UnsupportedApiError
from sskafka.controller.envelopes import open_answer, put_into_envelope
from sskafka.model.acl import Caller
from sskafka.model.errors import ErrorCode, KafkaError
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
        """The leader of the quorum, as far as this node knows; -1 if there is none."""
        ...

    async def leader_changed(self, timeout_s: float) -> None:
        """Return when the leader changes, or after the timeout."""
        ...


class ControllerLink:
    """Has a connection of its own, so that urgent requests do not wait behind slow ones."""

    def __init__(
        self,
        node_id: int,
        leaders: Leaders,
        decide_here: Callable[[Message, Caller | None], Awaitable[Any]],
        link_to: LinkTo[BrokerLink],
        clock: Clock,
        socket_timeout_ms: int = 30_000,
    ) -> None:
        """`socket_timeout_ms`: a request that the controller has not answered after this time is sent again."""
        self._socket_timeout_ms = socket_timeout_ms
        self._node_id = node_id
        self._leaders = leaders
        self._decide_here = decide_here
        self._links = BrokerLinks(link_to)
        self._clock = clock

    async def ask(self, request: Message, timeout_ms: int, caller: Caller | None = None) -> Any:
        """Return the controller's answer. Raises KafkaError with the reason if there is none in time.

        `caller`: the client for which this broker asks; None: it asks on its own account."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        problem = "no controller is elected"
        while (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            try:
                return await self._ask_leader(request, left_ms, caller)
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

    async def _ask_leader(self, request: Message, timeout_ms: float, caller: Caller | None) -> Any:
        leader_id = self._leaders.leader_id
        if leader_id == self._node_id:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._decide_here(request, caller)
        if leader_id == NO_NODE:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        link = self._links.to(leader_id)
        return await self._send(link, request, min(timeout_ms, self._socket_timeout_ms), caller)

    async def _send(self, link: BrokerLink, request: Message, timeout_ms: float, caller: Caller | None) -> Any:
        key = request.SCHEMA.key
        assert key is not None
        api = API_BY_KEY[key]
        limit_ms = int(timeout_ms) or 1
        if api.forwarded:
            version = await link.version_for(type(request))
            envelope = put_into_envelope(request, version, caller)
            return open_answer(await link.request(envelope, EnvelopeResponse, timeout_ms=limit_ms), key, version)
        answer = await link.request(request, api.response_class(), timeout_ms=limit_ms)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return answer

    def close(self) -> None:
        self._links.close()
