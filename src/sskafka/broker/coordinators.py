"""The coordinators of a broker, created on demand: a broker without groups or transactions starts without them.

                 AddPartitions, EndTxn, ...            Produce, TxnOffsetCommit
                          |                                   |
__transaction_state -> coordinator <--- local or remote --- verifier
                          | prepared
                       sender --- local or WriteTxnMarkers --> writer -> partitions led here, coordinator of groups

A coordinator is created by the first request for it, or when the metadata has the topic with its state. It receives no
metadata before this broker is in service: while a start replays the metadata log, the image is that of an older
cluster, and a coordinator would delete the offsets of topics that were created later.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from sskafka.broker import on_demand
from sskafka.client.broker_link import BrokerLinks, CallLater, Link, LinkTo
from sskafka.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.counters import Sample
from sskafka.model.settings import Settings
from sskafka.records.compression import Compression
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.background import Background
from sskafka.runtime.clock import Clock
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.error_mapping import error_code_of


class Coordinator(Protocol):
    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Called when the replicas match `image`."""
        ...

    def samples(self) -> Iterator[Sample]: ...

    def stop(self) -> None: ...


C = TypeVar("C", bound=Coordinator)
_log = logging.getLogger(__name__)


class LazyCoordinator(Generic[C]):
    def __init__(self, topic: str, make: Callable[[], C], is_in_service: Callable[[ClusterImage], bool]) -> None:
        """`topic` has the state. `is_in_service`: whether an image has the current registration of this broker."""
        self._topic = topic
        self._make = make
        self._is_in_service = is_in_service
        self._coordinator: C | None = None
        self._has_begun = False
        self._image = ClusterImage()

    def __call__(self) -> C:
        return self._begun(self._make()) if self._coordinator is None else self._coordinator

    def samples(self) -> Iterator[Sample]:
        if self._coordinator is not None:
            yield from self._coordinator.samples()

    def _begun(self, made: C) -> C:
        self._coordinator = made
        self._maybe_begin(made)
        return made

    def _try_to_create(self) -> None:
        """Create the coordinator. If that fails for lack of descriptors, the next change or request tries again."""
        try:
            made = self._make()
        except OSError as error:  # an import needs descriptors
            _log.warning("the coordinator of %s cannot be started for now: %s", self._topic, error)
        else:
            self._begun(made)

    def _maybe_begin(self, coordinator: C) -> None:
        if self._is_in_service(self._image):
            self._has_begun = True
            coordinator.metadata_changed(MetadataDelta.from_empty(self._image), self._image)

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self._image = image
        if self._coordinator is None:
            if self._topic in image.topics_by_name and self._is_in_service(image):
                self._try_to_create()
        elif self._has_begun:
            self._coordinator.metadata_changed(delta, image)
        else:
            self._maybe_begin(self._coordinator)

    def stop(self) -> None:
        if self._coordinator is not None:
            self._coordinator.stop()


class Coordinators:
    """`groups()` and `transactions()` return the coordinators."""

    def __init__(
        self,
        settings: Settings,
        replicas: ReplicaManager,
        clock: Clock,
        timers: TimerWheel,
        background: Background,
        call_later: CallLater,
        link_to: LinkTo[Link],
        image: Callable[[], ClusterImage],
        next_producer_id: Callable[[], Awaitable[int]],
    ) -> None:
        self._settings = settings
        self._replicas = replicas
        self._clock = clock
        self._timers = timers
        self._background = background
        self._call_later = call_later
        self._links = BrokerLinks(link_to)
        self._image = image
        self._next_producer_id = next_producer_id
        self.groups = LazyCoordinator(CONSUMER_OFFSETS, self._group_coordinator, replicas.is_in_service)
        self.transactions = LazyCoordinator(TRANSACTION_STATE, self._transaction_coordinator, replicas.is_in_service)

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.groups.metadata_changed(delta, image)
        self.transactions.metadata_changed(delta, image)

    def samples(self) -> Iterator[Sample]:
        yield from self.groups.samples()
        yield from self.transactions.samples()

    def stop(self) -> None:
        self.transactions.stop()
        self._links.close()
        self.groups.stop()

    @cached_property
    def marker_writer(self) -> "on_demand.MarkerWriter":
        return on_demand.MarkerWriter(
            self._replicas, self.groups(), self._clock, self._timers, lambda error: error_code_of(error)[0]
        )

    @cached_property
    def verifier(self) -> "on_demand.TransactionVerifier":
        return on_demand.TransactionVerifier(
            self._replicas.broker_id, self._image, self.transactions(), self._links, self._call_later
        )

    def _group_coordinator(self) -> "on_demand.GroupCoordinator":
        settings = self._settings
        environment = on_demand.CoordinatorEnvironment(
            self._clock,
            self._timers,
            self._background,
            settings["offsets.commit.timeout.ms"],
            on_demand.LoadingTurns(self._background),
            on_demand.LoadCounters(),
            settings["group.coordinator.append.linger.ms"],
            Compression(settings["offsets.topic.compression.codec"]),
            settings["offsets.load.buffer.size"],
        )
        return on_demand.GroupCoordinator(self._replicas, settings, environment)

    def _transaction_coordinator(self) -> "on_demand.TransactionCoordinator":
        settings, replicas, timers = self._settings, self._replicas, self._timers
        environment = on_demand.CoordinatorEnvironment(
            self._clock,
            timers,
            self._background,
            settings["request.timeout.ms"],
            on_demand.LoadingTurns(self._background),
            on_demand.LoadCounters(),
            load_bytes=settings["transaction.state.log.load.buffer.size"],
        )
        sender = on_demand.MarkerSender(
            replicas.broker_id, self._image, self.marker_writer, self._links, self._call_later, timers
        )
        return on_demand.TransactionCoordinator(
            replicas, settings, environment, self._image, self._next_producer_id, sender
        )
