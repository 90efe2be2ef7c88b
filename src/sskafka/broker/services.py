"""What a broker has beside its part in the quorum: replicas, coordinators, and the work in the background.

They are made in the order in which they depend on each other and hear of the metadata once that is read:

    metadata -> replicas open their logs, lead or follow -> coordinators load -> the controller is told
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from sskafka.broker.api_handlers import BrokerServices, allocate_producer_ids
from sskafka.broker.context import BrokerContext
from sskafka.client.broker_link import Address, BrokerLink, ConnectionOptions, LinkTo, TaskLink
from sskafka.controller.node_control import NodeControl
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.model.counters import Sample
from sskafka.model.settings import Settings
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.fetcher import FETCH_VERSION_MIN
from sskafka.replication.housekeeping import Housekeeping
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.background import LoopBackground
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.group_services import GroupServices
from sskafka.servers.kafka.handlers.producers import ProducerIds
from sskafka.servers.kafka.lazy_coordinator import CoordinatorResources
from sskafka.servers.kafka.transaction_services import TransactionDependencies, TransactionServices
from sskafka.servers.samples import topic_samples
from sskafka.storage.log_manager import LogManager
from sskafka.wire.schema import Message

if TYPE_CHECKING:
    from sskafka.replication.log_cleaner import LogCleaner
    from sskafka.replication.replica_moves import ReplicaMoves

log = logging.getLogger(__name__)

CLEANER_DELAY_S = 1.0
CONTROLLER_TIMEOUT_MS = 5_000

R = TypeVar("R", bound=Message)


class NodeServices:
    def __init__(self, context: BrokerContext, logs: LogManager, control: NodeControl) -> None:
        self._context = context
        self._logs = logs
        self._control = control
        self._node_id = context.settings["node.id"]
        self._cleaner: LogCleaner | None = None
        self.replicas = self._make_replicas()
        moves = self._maybe_watch_directories()
        timers = TimerWheel(context.clock, asyncio.get_running_loop().call_later)
        producer_ids = ProducerIds(lambda: allocate_producer_ids(control, self._node_id))
        coordinator_context = self._coordinator_context(timers)
        self._groups = self._make_groups(coordinator_context)
        self._transactions = self._make_transactions(coordinator_context, producer_ids)
        control.feed.subscribe(self._apply)
        housekeeping = self._start_housekeeping()
        context.run_in_background(self._clean_logs())
        self.for_handlers = BrokerServices(
            logs, self.replicas, timers, housekeeping, self._groups, producer_ids, self._transactions, moves
        )

    def samples(self) -> Iterator[Sample]:
        yield from self.replicas.samples()
        yield from self._logs.samples()
        for topic in list(self.replicas.topics()):
            yield from topic_samples(topic)
        yield from self._groups.samples()
        yield from self._transactions.samples()
        if self._cleaner is not None:
            yield from self._cleaner.samples()

    # -- the metadata

    def _apply(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.replicas.apply(delta, image)
        self.replicas.when_applied(lambda: self._applied(delta, image))

    def _applied(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self._groups.metadata_changed(delta, image)
        self._transactions.metadata_changed(delta, image)
        self._control.applied(image.next_offset)

    # -- replicas

    def _make_replicas(self) -> ReplicaManager:
        loop = asyncio.get_running_loop()
        settings, clock = self._context.settings, self._context.clock
        links = ClusterLinks(
            self._links_for("fetcher"),
            _ControllerRequests(self._control),
            loop.call_later,
            lambda: self._control.broker_epoch,
        )
        replicas = ReplicaManager(
            self._node_id, self._logs, settings, clock, loop.call_soon, links, loop.call_soon_threadsafe
        )
        self._context.stack.callback(replicas.stop)
        return replicas

    def _maybe_watch_directories(self) -> "ReplicaMoves | None":
        """With several of them the controller is told which replica lies where, and replicas can be moved."""
        logs, replicas, context = self._logs, self.replicas, self._context
        if len(logs.directories) < 2:
            return None
        from sskafka.replication.directory_reports import DirectoryReports  # noqa: PLC0415
        from sskafka.replication.replica_moves import ReplicaMoves  # noqa: PLC0415

        reports = DirectoryReports(
            self._node_id, self._ask_controller, lambda: self._control.broker_epoch, replicas.directory_known_of
        )
        replicas.on_placed = lambda partition: reports.report_home(logs, partition)
        moves = ReplicaMoves(
            logs,
            replicas.maybe_find,
            reports,
            context.clock,
            context.executor,
            replicas.moving,
            context.settings["num.replica.alter.log.dirs.threads"] or len(logs.directories),
        )
        for work in (reports.run(), moves.run()):
            context.run_in_background(work)
        return moves

    # -- coordinators

    def _coordinator_context(self, timers: TimerWheel) -> CoordinatorResources:
        background = LoopBackground(asyncio.get_running_loop(), self._context.executor)
        return CoordinatorResources(self.replicas, self._context.settings, self._context.clock, timers, background)

    def _make_groups(self, coordinator_context: CoordinatorResources) -> GroupServices:
        groups = GroupServices(coordinator_context)
        self._context.stack.callback(groups.stop)
        return groups

    def _make_transactions(
        self, coordinator_context: CoordinatorResources, producer_ids: ProducerIds
    ) -> TransactionServices:
        transactions = TransactionServices(
            coordinator_context,
            TransactionDependencies(
                self._groups,
                self._links_for("transactions"),
                asyncio.get_running_loop().call_later,
                lambda: self._control.image,
                producer_ids.next_id,
            ),
        )
        self._context.stack.callback(transactions.stop)
        return transactions

    # -- work in the background

    def _start_housekeeping(self) -> Housekeeping:
        clock, executor = self._context.clock, self._context.executor
        housekeeping = Housekeeping(self._logs, self.replicas, self._effective_settings, clock, executor)
        self._context.stack.callback(housekeeping.checkpoint)
        self._context.run_in_background(housekeeping.run())
        return housekeeping

    async def _clean_logs(self) -> None:
        """Compaction; imported once the start is over."""
        delay_s = CLEANER_DELAY_S
        while self._cleaner is None:
            await asyncio.sleep(delay_s)
            try:
                self._cleaner = self._make_cleaner()
            except OSError as error:  # an import needs descriptors
                log.warning("the log cleaner cannot be started for now: %s", error)
                delay_s *= 2
        await self._cleaner.run()

    def _make_cleaner(self) -> "LogCleaner":
        from sskafka.replication.log_cleaner import LogCleaner  # noqa: PLC0415

        return LogCleaner(
            self._logs, self.replicas, self._effective_settings, self._context.clock, self._context.executor
        )

    def _effective_settings(self) -> Settings:
        return effective_settings(self._context.settings, self._control.image)

    # -- the rest of the cluster

    def _links_for(self, purpose: str) -> LinkTo[BrokerLink]:
        settings = self._context.settings
        options = ConnectionOptions(
            f"broker-{self._node_id}-{purpose}",
            connect_timeout_ms=settings["socket.connection.setup.timeout.ms"],
            request_timeout_ms=settings["replica.socket.timeout.ms"],
            connect_timeout_max_ms=settings["socket.connection.setup.timeout.max.ms"],
            receive_buffer_bytes=settings["replica.socket.receive.buffer.bytes"],
        )
        return lambda broker_id: BrokerLink(lambda: self._address_of(broker_id), options, FETCH_VERSION_MIN)

    def _address_of(self, broker_id: int) -> Address | None:
        """Where another broker listens for this one."""
        settings = self._context.settings
        broker = self._control.image.brokers.get(broker_id)
        name = settings.inter_broker_listener
        endpoint = broker.endpoint(name) if broker is not None else None
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    async def _ask_controller(self, request: Message, timeout_ms: int) -> Any:
        return await self._control.client.ask(request, timeout_ms)


class _ControllerRequests(TaskLink):
    """The link of this broker's replicas to the active controller."""

    def __init__(self, control: NodeControl) -> None:
        super().__init__()
        self._control = control

    async def request(self, message: Message, response_class: type[R]) -> R:
        response: R = await self._control.client.ask(message, CONTROLLER_TIMEOUT_MS)
        return response
