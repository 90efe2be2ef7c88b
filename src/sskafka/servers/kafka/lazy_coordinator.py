"""Coordinators that are created on demand: a broker without groups or transactions starts without them.

A coordinator is created by the first request for it, or when the metadata has the topic with its state. It receives no
metadata before this broker is in service: while a start replays the metadata log, the image is that of an older
cluster, and a coordinator would delete the offsets of topics that were created later.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.background import Background
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import TimerWheel


class CoordinatorResources(NamedTuple):
    """What coordinators are made from."""

    replicas: ReplicaManager
    settings: Settings
    clock: Clock
    wheel: TimerWheel
    background: Background


class Service(Protocol):
    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Called when the replicas match `image`."""
        ...

    def stop(self) -> None: ...


S = TypeVar("S", bound=Service)


class LazyCoordinator(Generic[S]):
    def __init__(self, topic: str, make: Callable[[], S], is_in_service: Callable[[ClusterImage], bool]) -> None:
        """`topic` has the state. `is_in_service`: whether an image has the current registration of this broker."""
        self._topic = topic
        self._make = make
        self._is_in_service = is_in_service
        self._service: S | None = None
        self._has_begun = False
        self._image = ClusterImage()

    @property
    def service(self) -> S:
        return self._created() if self._service is None else self._service

    @property
    def if_needed(self) -> S | None:
        """The service, or None if nothing has needed it yet."""
        return self._service

    def _created(self) -> S:
        self._service = made = self._make()
        self._maybe_begin(made)
        return made

    def _maybe_begin(self, service: S) -> None:
        if self._is_in_service(self._image):
            self._has_begun = True
            service.metadata_changed(MetadataDelta.of_everything(self._image), self._image)

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self._image = image
        if self._service is None:
            if self._topic in image.topics_by_name and self._is_in_service(image):
                self._created()
        elif self._has_begun:
            self._service.metadata_changed(delta, image)
        else:
            self._maybe_begin(self._service)

    def stop(self) -> None:
        if self._service is not None:
            self._service.stop()
