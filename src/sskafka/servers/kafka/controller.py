"""What the servers ask of the controller: to decide on the newest image and answer once the decision is durable."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from sskafka.metadata.decision import Decision
from sskafka.metadata.image import ClusterImage

Response = TypeVar("Response")


class Controller(Protocol):
    @property
    def image(self) -> ClusterImage: ...

    async def submit(self, decide: Callable[[ClusterImage], Decision[Response]]) -> Response: ...
