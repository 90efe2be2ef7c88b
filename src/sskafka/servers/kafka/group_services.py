"""Groups on a broker, made when they are first needed: a broker that has none starts without them.

Needed they are when somebody asks, or when the metadata has the topic that keeps them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.clock import Clock
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.controller import Controller
from sskafka.servers.kafka.registry import Handler, Registry
from sskafka.servers.kafka.request import Request, Response
from sskafka.storage.flusher import Background
from sskafka.wire.apis import ApiKey

if TYPE_CHECKING:
    from sskafka.coordination.group_coordinator import GroupCoordinator

OFFSETS_TOPIC = "__consumer_offsets"
GROUP_APIS = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_GROUP_TIMELINE,
)


class Surroundings(NamedTuple):
    """What coordinators are made from."""

    replicas: ReplicaManager
    settings: Settings
    clock: Clock
    wheel: TimerWheel
    background: Background


class GroupServices:
    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._coordinator: GroupCoordinator | None = None
        self._image = ClusterImage()

    @property
    def coordinator(self) -> "GroupCoordinator":
        if self._coordinator is None:
            self._coordinator = self._make()
            self._coordinator.metadata_changed(MetadataDelta.of_everything(self._image), self._image)
        return self._coordinator

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Called when the replicas are as `image` has them."""
        self._image = image
        if self._coordinator is not None:
            self._coordinator.metadata_changed(delta, image)
        elif OFFSETS_TOPIC in image.topics_by_name:
            self._coordinator = self._make()
            self._coordinator.metadata_changed(MetadataDelta.of_everything(image), image)

    def stop(self) -> None:
        if self._coordinator is not None:
            self._coordinator.stop()

    def _make(self) -> "GroupCoordinator":
        from sskafka.coordination.group_coordinator import GroupCoordinator  # noqa: PLC0415
        from sskafka.coordination.shard import ShardRuntime  # noqa: PLC0415
        from sskafka.groups.group_settings import GroupSettings  # noqa: PLC0415

        replicas, settings, clock, wheel, background = self._surroundings
        runtime = ShardRuntime(clock, wheel, background, settings["offsets.commit.timeout.ms"])
        return GroupCoordinator(replicas, GroupSettings.of(settings), runtime)

    # -- the APIs

    def register(self, registry: Registry, view: ClusterView, controller: Controller) -> None:
        handlers: dict[int, Handler] = {}

        def make_handlers() -> dict[int, Handler]:
            if not handlers:
                handlers.update(self._handlers(registry, view, controller))
            return handlers

        for key in GROUP_APIS:
            registry.add(key, at_first_use(key, make_handlers))

    def _handlers(self, registry: Registry, view: ClusterView, controller: Controller) -> dict[int, Handler]:
        from sskafka.servers.kafka.handlers.consumer_groups import ConsumerGroupHandlers  # noqa: PLC0415
        from sskafka.servers.kafka.handlers.find_coordinator import FindCoordinatorHandler  # noqa: PLC0415
        from sskafka.servers.kafka.handlers.group_offsets import GroupOffsetHandlers  # noqa: PLC0415
        from sskafka.servers.kafka.handlers.groups import GroupHandlers  # noqa: PLC0415

        found = Registry(registry.spawn)
        replicas, settings = self._surroundings.replicas, self._surroundings.settings
        FindCoordinatorHandler(view, controller, settings, replicas.when_applied).register(found)
        GroupHandlers(self.coordinator).register(found)
        ConsumerGroupHandlers(self.coordinator).register(found)
        GroupOffsetHandlers(self.coordinator, view).register(found)
        return {key: api.handle for key, api in found.by_key.items()}


def at_first_use(key: int, make_handlers: Callable[[], dict[int, Handler]]) -> Handler:
    def handle(request: Request) -> Response | None:
        return make_handlers()[key](request)

    return handle
