"""What the servers ask of the control plane."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.wire.schema import Message

Response = TypeVar("Response")

ANSWER_TIMEOUT_MS = 30_000
"""For requests that bring no time limit of their own."""


class Controller(Protocol):
    """The active controller, wherever it is."""

    @property
    def image(self) -> ClusterImage: ...

    async def ask(self, request: Message, timeout_ms: int) -> Any:
        """The answer, once what was decided is committed; KafkaError when there was none in time."""
        ...


class QuorumNode(Protocol):
    """This node's own part in the quorum, as other nodes ask it."""

    async def decide(self, request: Message) -> Any:
        """The answer of this node as the active controller; KafkaError NOT_CONTROLLER when it is not."""
        ...

    async def answer(self, request: Any) -> Message:
        """To Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot and Fetch of the metadata log."""
        ...


async def ask(
    controller: Controller, request: Message, refused: Callable[[ErrorCode, str | None], Response]
) -> Response:
    """The controller's answer; where it gives none, say because none is elected, what `refused` makes of that."""
    timeout_ms: int = getattr(request, "timeout_ms", 0)
    try:
        response: Response = await controller.ask(request, timeout_ms if timeout_ms > 0 else ANSWER_TIMEOUT_MS)
    except Exception as error:
        return refused(*error_code_of(error))
    return response
