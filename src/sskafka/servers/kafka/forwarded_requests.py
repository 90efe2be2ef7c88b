"""Requests of clients that other brokers forward in an Envelope: this node authorizes and decides them.

    envelope -> the client's request -> the cluster operation of its API -> its handler -> the active controller

The handlers are those that serve the API on a listener. They see the principal and the address of the client, and a
controller that does not forward again: a node that is not the active controller answers NOT_CONTROLLER.
"""

import inspect
from collections.abc import Callable
from typing import Any

from sskafka.controller.envelopes import EnvelopeContent
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import Caller
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.kafka.controller import Controller, QuorumNode
from sskafka.servers.kafka.refusals import refusal
from sskafka.servers.kafka.registry import HandlerFactories
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.schema import Message

ForwardedHandlers = Callable[[Controller], HandlerFactories]
"""Constructs the handlers of forwarded APIs around a controller."""


class ForwardedRequest(Request):
    """A request of a client that is connected to another broker."""

    __slots__ = ("_caller",)

    def __init__(self, envelope: Request, content: EnvelopeContent, caller: Caller) -> None:
        empty = memoryview(b"")
        super().__init__(
            envelope.connection,
            content.version,
            content.correlation_id,
            caller.client_id,
            empty,
            0,
            envelope.received_ns,
            content.key,
        )
        self._caller = caller

    @property
    def principal(self) -> str:
        return self._caller.principal

    @property
    def host(self) -> str:
        return self._caller.host

    @property
    def is_token_authenticated(self) -> bool:
        return self._caller.is_token_authenticated

    def mute(self, throttle_ms: int) -> None:
        """Do nothing: the broker to which the client is connected mutes it. Other clients share this connection."""


class _OwnController:
    """Asks the controller of this node, and remembers if that was not the active one."""

    def __init__(self, member: QuorumNode, image: ClusterImage) -> None:
        self._member = member
        self.image = image
        self.refusal: KafkaError | None = None

    async def ask(self, request: Message, timeout_ms: int, caller: Caller | None = None) -> Any:
        try:
            return await self._member.decide(request, caller)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_CONTROLLER:
                self.refusal = error
            raise


async def decide_for_client(
    member: QuorumNode, handlers: ForwardedHandlers, content: EnvelopeContent, caller: Caller, envelope: Request
) -> Message:
    """Return the response to the client. Raise KafkaError if this node is not the active controller."""
    api = API_BY_KEY[content.key]
    request = ForwardedRequest(envelope, content, caller)
    if api.operation is not None and not request.may_on_cluster(api.operation):
        refused: Message = refusal(api, content.request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return refused
    controller = _OwnController(member, member.image)
    family, method = api.handler.split(".")
    response = getattr(handlers(controller)[family](), method)(content.request, request)
    if inspect.isawaitable(response):
        response = await response
    if controller.refusal is not None:
        raise controller.refusal
    answered: Message = response
    return answered
