"""What the servers ask of the controller: to decide on the newest image and answer once the decision is durable."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from sskafka.metadata.decision import Decision
from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.error_mapping import error_code_of

Response = TypeVar("Response")


class Controller(Protocol):
    @property
    def image(self) -> ClusterImage: ...

    async def submit(self, decide: Callable[[ClusterImage], Decision[Response]]) -> Response: ...


async def ask(
    controller: Controller,
    decide: Callable[[ClusterImage], Decision[Response]],
    refused: Callable[[ErrorCode, str | None], Response],
) -> Response:
    """The controller's answer; where it cannot give one, say because its disk is full, what `refused` makes of that."""
    try:
        return await controller.submit(decide)
    except Exception as error:
        return refused(*error_code_of(error))
