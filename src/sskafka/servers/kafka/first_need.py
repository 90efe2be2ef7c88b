"""Coordinators that are made when they are first needed: a broker without groups or transactions starts without them.

Needed they are when somebody asks, or when the metadata has the topic that keeps their state.
"""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.clock import Clock
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.servers.kafka.registry import Handler, Registry
from sskafka.servers.kafka.request import Request, Response
from sskafka.storage.flusher import Background


class Surroundings(NamedTuple):
    """What coordinators are made from."""

    replicas: ReplicaManager
    settings: Settings
    clock: Clock
    wheel: TimerWheel
    background: Background


class Service(Protocol):
    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Called when the replicas are as `image` has them."""
        ...

    def stop(self) -> None: ...


S = TypeVar("S", bound=Service)


class FirstNeed(Generic[S]):
    def __init__(self, topic: str, make: Callable[[], S]) -> None:
        """`topic`: where the state is kept."""
        self._topic = topic
        self._make = make
        self._service: S | None = None
        self._image = ClusterImage()

    @property
    def service(self) -> S:
        return self._created() if self._service is None else self._service

    def _created(self) -> S:
        self._service = made = self._make()
        made.metadata_changed(MetadataDelta.of_everything(self._image), self._image)
        return made

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self._image = image
        if self._service is not None:
            self._service.metadata_changed(delta, image)
        elif self._topic in image.topics_by_name:
            self._created()

    def stop(self) -> None:
        if self._service is not None:
            self._service.stop()


def register_at_first_use(registry: Registry, keys: Iterable[int], add_handlers: Callable[[Registry], None]) -> None:
    """Serve APIs whose handlers `add_handlers` adds to a registry when the first of them is asked for."""
    made = Registry(registry.spawn)

    def handler(key: int) -> Handler:
        def handle(request: Request) -> Response | None:
            if not made.by_key:
                add_handlers(made)
            return made.by_key[key].handle(request)

        return handle

    for key in keys:
        registry.add(key, handler(key))
