"""The control plane as the Kafka server uses it."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import Caller
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.wire.schema import Message

Response = TypeVar("Response")

ANSWER_TIMEOUT_MS = 30_000
"""Time limit of requests that do not have one."""


class Controller(Protocol):
    """The active controller, on this or another node."""

    @property
    def image(self) -> ClusterImage: ...

    async def ask(self, request: Message, timeout_ms: int, caller: Caller | None = None) -> Any:
        """Return the response once the decision is committed. Raise KafkaError if there is none in time.

        `caller`: the client that asks; the node of the controller checks what it may do. None: this broker asks."""
        ...


class QuorumNode(Protocol):
    """This node as a member of the quorum, as other nodes see it."""

    @property
    def image(self) -> ClusterImage: ...

    async def decide(self, request: Message, caller: Caller | None = None) -> Any:
        """Respond as the active controller. Raise KafkaError with NOT_CONTROLLER if this node is not active.

        `caller`: the client that asks; None: a broker asks."""
        ...

    async def answer(self, request: Any) -> Message:
        """Respond to Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot, and Fetch of the metadata log."""
        ...


async def ask(
    controller: Controller,
    request: Message,
    refused: Callable[[ErrorCode, str | None], Response],
    caller: Caller,
) -> Response:
    """Return the response of the controller, or `refused(error)` if there is none, for example without a leader."""
    timeout_ms: int = getattr(request, "timeout_ms", 0)
    try:
        timeout_ms = timeout_ms if timeout_ms > 0 else ANSWER_TIMEOUT_MS
        response: Response = await controller.ask(request, timeout_ms, caller)
    except Exception as error:
        return refused(*error_code_of(error))
    return response
