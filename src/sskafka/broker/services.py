"""The services of a broker, beside its part in the quorum: replicas, coordinators and background work.

They are constructed in the order of their dependencies. A change of the metadata reaches them in this order:

    metadata -> replicas open their logs, lead or follow -> coordinators load -> the control loop learns the offset
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any, TypeVar

from sskafka.broker import on_demand
from sskafka.broker.context import BrokerContext
from sskafka.broker.coordinators import Coordinators
from sskafka.client.broker_link import Address, BrokerLink, ConnectionOptions, LinkTo, TaskLink
from sskafka.client.node_security import link_security
from sskafka.controller.node_control import NodeControl
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.model.counters import Sample
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.fetcher import FETCH_VERSION_MIN
from sskafka.replication.housekeeping import Housekeeping
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.background import LoopBackground
from sskafka.runtime.serial_thread import SerialThread
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.handlers.producers import ProducerIds
from sskafka.servers.samples import topic_samples
from sskafka.storage.disk import File
from sskafka.storage.log import Log
from sskafka.storage.log_manager import LogManager
from sskafka.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from sskafka.wire.schema import Message

_log = logging.getLogger(__name__)

CLEANER_DELAY_S = 1.0
SCRUBBER_DELAY_S = 2.0
CONTROLLER_TIMEOUT_MS = 5_000
ALLOCATE_TIMEOUT_MS = 10_000

R = TypeVar("R", bound=Message)


class BrokerServices:
    def __init__(self, context: BrokerContext, logs: LogManager, control: NodeControl) -> None:
        self._context = context
        self._control = control
        self._cleaner: on_demand.LogCleaner | None = None
        self._scrubber: on_demand.LogScrubber | None = None
        self._node_id = context.settings["node.id"]
        settings, clock, executor, *_ = context
        loop = asyncio.get_running_loop()

        self.logs = logs
        self.timers = TimerWheel(clock, loop.call_later)
        self.thread = SerialThread(LoopBackground(loop, executor))
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.replicas = ReplicaManager(
            self._node_id,
            logs,
            settings,
            clock,
            loop.call_soon,
            self._cluster_links("fetcher"),
            loop.call_soon_threadsafe,
            context.selector.call_at_end,
        )
        context.stack.callback(self.replicas.stop)
        self.moves = self._start_moves() if len(logs.directories) > 1 else None
        self.coordinators = Coordinators(
            settings,
            self.replicas,
            clock,
            self.timers,
            LoopBackground(loop, executor),
            loop.call_later,
            self._links_for("transactions"),
            lambda: control.image,
            self.producer_ids.next_id,
        )
        context.stack.callback(self.coordinators.stop)
        self.replicas.on_retried = self.coordinators.metadata_changed
        self.housekeeping = Housekeeping(logs, self.replicas, self._effective_settings, clock, executor)
        context.stack.callback(self.housekeeping.checkpoint)
        control.feed.subscribe(self._apply)
        context.run_in_background(self.housekeeping.run())
        context.run_in_background(self._clean_logs())
        context.run_in_background(self._scrub_logs())

    def samples(self) -> Iterator[Sample]:
        yield from self.replicas.samples()
        yield from self.logs.samples()
        for topic in list(self.replicas.topics()):
            yield from topic_samples(topic)
        yield from self.coordinators.samples()
        if self._cleaner is not None:
            yield from self._cleaner.samples()
        if self._scrubber is not None:
            yield from self._scrubber.samples()

    # -- the metadata

    def _apply(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.replicas.apply(delta, image)
        self.replicas.when_applied(lambda: self._applied(delta, image))

    def _applied(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.coordinators.metadata_changed(delta, image)
        self._control.applied(image.next_offset)

    # -- work in the background

    def _start_moves(self) -> "on_demand.ReplicaMoves":
        """Start moves of replicas between log directories, and reports of their directories to the controller."""
        logs, replicas, context = self.logs, self.replicas, self._context
        reports = on_demand.DirectoryReports(
            self._node_id, self._cluster_links("directories"), replicas.known_directory_of
        )
        context.stack.callback(reports.stop)
        replicas.on_placed = lambda partition: reports.report_directory(logs, partition)
        moves = on_demand.ReplicaMoves(
            logs,
            replicas.maybe_find,
            reports,
            context.clock,
            context.executor,
            replicas.moving,
            context.settings["num.replica.alter.log.dirs.threads"] or len(logs.directories),
        )
        context.run_in_background(moves.run())
        return moves

    async def _clean_logs(self) -> None:
        """Compact logs. The cleaner is imported after the start, which it would slow down."""
        delay_s = CLEANER_DELAY_S
        while self._cleaner is None:
            await asyncio.sleep(delay_s)
            try:
                self._cleaner = self._make_cleaner()
            except OSError as error:  # an import needs descriptors
                _log.warning("the log cleaner cannot be started for now: %s", error)
                delay_s *= 2
        await self._cleaner.run()

    def _make_cleaner(self) -> "on_demand.LogCleaner":
        return on_demand.LogCleaner(
            self.logs, self.replicas, self._effective_settings, self._context.clock, self._context.executor
        )

    async def _scrub_logs(self) -> None:
        """Verify logs in the background. The scrubber is imported after the start, which it would slow down."""
        await asyncio.sleep(SCRUBBER_DELAY_S)
        context, links = self._context, self._cluster_links("scrubber")
        self._scrubber = on_demand.LogScrubber(
            self.replicas, self._effective_settings, context.clock, context.executor, links, self.logs
        )
        self._scrubber.on_replaced = self._batches_replaced
        self.replicas.on_unreadable = self._scrubber.suspect
        await self._scrubber.run()

    def _batches_replaced(self, log: Log) -> None:
        if self._cleaner is not None:
            self._cleaner.metrics.may_clean_again(log)

    def suspect_file(self, file: File) -> None:
        """Verify the segment in which a reader has found a bad batch."""
        if self._scrubber is not None:
            self._scrubber.suspect_file(file)

    def _effective_settings(self) -> Settings:
        return effective_settings(self._context.settings, self._control.image)

    # -- the rest of the cluster

    def _cluster_links(self, purpose: str) -> ClusterLinks:
        loop = asyncio.get_running_loop()
        controller = _ControllerRequests(self._control)
        return ClusterLinks(self._links_for(purpose), controller, loop.call_later, self._broker_epoch)

    def _links_for(self, purpose: str) -> LinkTo[BrokerLink]:
        settings = self._context.settings
        options = ConnectionOptions(
            f"broker-{self._node_id}-{purpose}",
            connect_timeout_ms=settings["socket.connection.setup.timeout.ms"],
            request_timeout_ms=settings["replica.socket.timeout.ms"],
            connect_timeout_max_ms=settings["socket.connection.setup.timeout.max.ms"],
            receive_buffer_bytes=settings["replica.socket.receive.buffer.bytes"],
            security=link_security(settings, settings.inter_broker_endpoint, self._effective_settings),
        )
        return lambda broker_id: BrokerLink(lambda: self._address_of(broker_id), options, FETCH_VERSION_MIN)

    def _address_of(self, broker_id: int) -> Address | None:
        """Return the address at which another broker accepts requests of this broker."""
        broker = self._control.image.brokers.get(broker_id)
        name = self._context.settings.inter_broker_listener
        endpoint = broker.endpoint(name) if broker is not None else None
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    def _broker_epoch(self) -> int:
        return self._control.broker_epoch

    async def _ask_controller(self, request: Message, timeout_ms: int) -> Any:
        return await self._control.client.ask(request, timeout_ms)

    async def _allocate_producer_ids(self) -> range:
        request = AllocateProducerIdsRequest(self._node_id, self._broker_epoch())
        response = await self._ask_controller(request, ALLOCATE_TIMEOUT_MS)
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(response.error_code), "the controller allocated no producer ids")
        return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)


class _ControllerRequests(TaskLink):
    """The link of this broker's replicas to the active controller."""

    def __init__(self, control: NodeControl) -> None:
        super().__init__()
        self._control = control

    async def request(self, message: Message, response_class: type[R]) -> R:
        response: R = await self._control.client.ask(message, CONTROLLER_TIMEOUT_MS)
        return response
