"""Groups on a broker: their coordinator and their API handlers, created on demand."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from sskafka.metadata.image import TopicImage
from sskafka.model.counters import Sample
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.controller import Controller
from sskafka.servers.kafka.lazy_coordinator import CoordinatorResources, LazyCoordinator
from sskafka.servers.kafka.registry import HandlerFactories

if TYPE_CHECKING:
    from sskafka.coordination.group_coordinator import GroupCoordinator
    from sskafka.servers.kafka.internal_topics import InternalTopics

OFFSETS_TOPIC = "__consumer_offsets"
METRICS = "kafka_server_group_coordinator_metrics_"


class GroupServices:
    find_topic: Callable[[str], "Awaitable[TopicImage | None]"]
    """Return an internal topic, which is created if it is missing. Set by `handler_factories`."""

    def __init__(self, context: CoordinatorResources) -> None:
        self._context = context
        self._topics: InternalTopics | None = None
        self._lazy: LazyCoordinator[GroupCoordinator] = LazyCoordinator(
            OFFSETS_TOPIC, self._make, context.replicas.is_in_service
        )
        self.metadata_changed = self._lazy.metadata_changed
        self.stop = self._lazy.stop

    @property
    def coordinator(self) -> "GroupCoordinator":
        return self._lazy.service

    def _make(self) -> "GroupCoordinator":
        from sskafka.coordination.context import CoordinatorEnvironment  # noqa: PLC0415
        from sskafka.coordination.group_coordinator import GroupCoordinator  # noqa: PLC0415
        from sskafka.coordination.loading import LoadCounters, LoadingTurns  # noqa: PLC0415
        from sskafka.records.compression import Compression  # noqa: PLC0415

        replicas, settings, clock, wheel, background = self._context
        timeout_ms = settings["offsets.commit.timeout.ms"]
        environment = CoordinatorEnvironment(
            clock,
            wheel,
            background,
            timeout_ms,
            LoadingTurns(background),
            LoadCounters(),
            settings["group.coordinator.append.linger.ms"],
            Compression(settings["offsets.topic.compression.codec"]),
            settings["offsets.load.buffer.size"],
        )
        return GroupCoordinator(replicas, settings, environment)

    def samples(self) -> Iterator[Sample]:
        coordinator = self._lazy.if_needed
        return iter(()) if coordinator is None else coordinator.runtime.samples(METRICS)

    # -- the APIs

    def handler_factories(self, view: ClusterView, controller: Controller) -> HandlerFactories:
        def find_topic(name: str) -> "Awaitable[TopicImage | None]":
            return self._internal_topics(view, controller).find_or_create(name)

        self.find_topic = find_topic
        return {
            "find_coordinator": lambda: self._find_coordinator(view, controller),
            "groups": self._group_handlers,
            "consumer_groups": lambda: self._consumer_group_handlers(view),
            "group_offsets": lambda: self._group_offset_handlers(view),
        }

    def _internal_topics(self, view: ClusterView, controller: Controller) -> "InternalTopics":
        from sskafka.servers.kafka.internal_topics import InternalTopics  # noqa: PLC0415

        if self._topics is None:
            replicas, settings = self._context.replicas, self._context.settings
            self._topics = InternalTopics(view, controller, settings, replicas.when_applied)
        return self._topics

    def _find_coordinator(self, view: ClusterView, controller: Controller) -> object:
        from sskafka.servers.kafka.handlers.find_coordinator import FindCoordinatorHandler  # noqa: PLC0415

        return FindCoordinatorHandler(view, self._internal_topics(view, controller))

    def _group_handlers(self) -> object:
        from sskafka.servers.kafka.handlers.groups import GroupHandlers  # noqa: PLC0415

        return GroupHandlers(self.coordinator)

    def _consumer_group_handlers(self, view: ClusterView) -> object:
        from sskafka.servers.kafka.handlers.consumer_groups import ConsumerGroupHandlers  # noqa: PLC0415

        is_configured = "consumer" in self._context.settings["group.coordinator.rebalance.protocols"]
        return ConsumerGroupHandlers(self.coordinator, view, is_configured)

    def _group_offset_handlers(self, view: ClusterView) -> object:
        from sskafka.servers.kafka.handlers.group_offsets import GroupOffsetHandlers  # noqa: PLC0415

        return GroupOffsetHandlers(self.coordinator, view)
