"""The composition root: settings become a clock, a disk and sockets, those become services, those become servers.

Nothing else wires parts together. Starting goes from the bottom up, stopping from the top down:

    sockets bound -> log directories locked -> metadata read -> quorum joined -> broker registered, replicas opened
    -> unfenced -> clients served -> the other doors open

Voters reach each other on the ports that clients use, so these are open as soon as the metadata is read, for other
nodes alone; a node that is the whole quorum has nobody to wait for and opens them last.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sskafka.client import topics_file
from sskafka.client.admin import NewTopic
from sskafka.client.clock import SystemClock
from sskafka.client.cluster import Cluster
from sskafka.client.connection import Address, ConnectionOptions
from sskafka.metadata.broker_lifecycle import supported_features
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.model import listeners as addresses
from sskafka.model.clock import Clock
from sskafka.model.counters import ConnectionCounters, Sample
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.quorum.control_thread import ControlThread
from sskafka.quorum.formatting import format_storage
from sskafka.quorum.journal_file import journal_path
from sskafka.quorum.node_control import NodeControl
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.controller_requests import ControllerRequests
from sskafka.replication.housekeeping import Housekeeping
from sskafka.replication.leader_connections import LeaderConnections
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.servers.adr.services import AdrServices
from sskafka.servers.event_loop import new_event_loop
from sskafka.servers.kafka.api_tables import (
    BrokerServices,
    allocate_producer_ids,
    register_broker_apis,
    register_controller_apis,
)
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.first_need import Surroundings
from sskafka.servers.kafka.group_services import GroupServices
from sskafka.servers.kafka.handlers.producers import ProducerIds
from sskafka.servers.kafka.listener import ConnectionLimits, Listener
from sskafka.servers.kafka.readiness import ServedApis
from sskafka.servers.kafka.registry import Api, Registry
from sskafka.servers.kafka.request_memory import RequestMemory
from sskafka.servers.kafka.sockets import bind, bind_door
from sskafka.servers.kafka.transaction_services import Neighbours, TransactionServices
from sskafka.servers.samples import control_samples, process_samples, topic_samples
from sskafka.storage.disk import OsDisk
from sskafka.storage.log_manager import LogManager
from sskafka.storage.loop_background import LoopBackground
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest
from sskafka.wire.messages.broker_registration import Listener as RegisteredListener
from sskafka.wire.schema import Message

if TYPE_CHECKING:
    from sskafka.replication.log_cleaner import LogCleaner
    from sskafka.replication.replica_moves import ReplicaMoves
    from sskafka.servers.adr.door import Door as AdrDoor
    from sskafka.servers.http.supervisor import HttpDoor

log = logging.getLogger(__name__)

THREADS = 4  # they sit in fsync and cold reads
REQUEST_MEMORY_DEFAULT_BYTES = 256 * 1024 * 1024
DRAIN_TIMEOUT_S = 5.0
CLEANER_DELAY_S = 1.0
HTTP_LISTENER, ADR_LISTENER = "http.listener", "adr.listener"
EVERY_INTERFACE = {"", "0.0.0.0", "::"}


class Broker:
    """One node: a broker, a voter of the metadata quorum, or both; its data on the running event loop.

    `inherited` has sockets, by listener name, that whoever started this process has bound already.
    """

    def __init__(
        self, settings: Settings, clock: Clock | None = None, inherited: Mapping[str, socket.socket] | None = None
    ) -> None:
        self.settings = settings
        self.node_id: int = settings["node.id"]
        self.is_broker = "broker" in settings["process.roles"]
        self.cluster_id = ""
        self.advertised: list[addresses.Listener] = []
        self._clock = clock or SystemClock()
        self._inherited = dict(inherited or {})
        self._disk = OsDisk()
        self._stack = AsyncExitStack()
        self._requests: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] | None = None
        self._connections = ConnectionCounters()
        self._registry = Registry(self._spawn_request)
        self._served = ServedApis()
        self._services: BrokerServices | None = None
        self._http: HttpDoor | None = None
        self._door_addresses: dict[str, str] = {}
        self._cleaner: LogCleaner | None = None
        self.recovery = ""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that clients are told, as `bootstrap.servers` takes them."""
        return ",".join(f"{listener.host}:{listener.port}" for listener in self.advertised)

    @property
    def http_address(self) -> str | None:
        """host:port of the HTTP door, when it has one."""
        return self._door_addresses.get(HTTP_LISTENER)

    @property
    def adr_address(self) -> str | None:
        """The same of the ADR's door."""
        return self._door_addresses.get(ADR_LISTENER)

    async def start(self) -> None:
        """Returns when the Kafka port answers; raises what kept the broker from starting, and leaves nothing behind."""
        self._failed = asyncio.get_running_loop().create_future()
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise

    async def _start(self) -> None:
        topics = self._topics_to_create()
        sockets = self._bind_sockets()
        adr_socket = self._bind_door(ADR_LISTENER)
        http_socket = self._bind_door(HTTP_LISTENER)
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="sskafka-io")
        self._stack.callback(self._executor.shutdown)
        logs = self._open_logs(LoopBackground(asyncio.get_running_loop(), self._executor))
        self._stack.callback(logs.release)
        control = self._control = NodeControl(
            self.settings, self.cluster_id, self._disk, self._clock, self._executor, new_event_loop, self._fail
        )
        self._stack.callback(lambda: logs.close(control.broker_epoch))
        if self.is_broker:
            self._services = self._start_services(logs, control)
        await control.open()
        self._stack.push_async_callback(control.close)
        await self._serve_quorum(control, sockets)
        services = self._services
        if services is not None:
            register_broker_apis(self._registry, services, control, self.settings, self._clock, self.cluster_id)
            adr = self._adr = AdrServices(lambda: self._make_adr_door(services, control))
            adr.register(self._registry)
            await self._join_cluster(control, logs, sockets, http_socket)
            self._stack.push_async_callback(adr.close)
            if adr_socket is not None:
                await self._open_adr(adr_socket)
            if topics:
                self._stack.push_async_callback(_end, self._spawn_background(self._create_topics(topics)))
        else:
            await control.begin()

    async def _join_cluster(
        self,
        control: NodeControl,
        logs: LogManager,
        sockets: dict[str, socket.socket],
        http_socket: socket.socket | None,
    ) -> None:
        """The HTTP door opens behind the Kafka port; where others are awaited, it tells so meanwhile."""
        if not control.is_alone:
            self._served.open_to_nodes(self._registry)
            await self._serve(sockets)
        await control.begin()
        if not control.is_alone:
            self._maybe_open_http(http_socket, sockets, control)
        await self._unless_failed(control.join(self._registration(logs), lambda: logs.offline_directory_ids))
        self.recovery = str(logs.recovery)
        self._served.open_to_all(self._registry)
        if control.is_alone:
            await self._serve(sockets)
            self._maybe_open_http(http_socket, sockets, control)
        self._stack.push_async_callback(control.leave)

    async def doors_open(self) -> None:
        """Returns when every door is open; the Kafka port is so first, and has been since `start` returned."""
        if self._http is not None:
            await self._unless_failed(self._http.opened())

    async def stop(self) -> None:
        """Refuse new requests, put everything on the disk and leave the mark of a clean stop."""
        await self._stack.aclose()

    async def failure(self) -> None:
        """Waits until a background task dies, and raises what killed it: the broker must not go on without it."""
        assert self._failed is not None, "the broker has not been started"
        await asyncio.shield(self._failed)

    async def _unless_failed(self, work: Coroutine[Any, Any, None]) -> None:
        """Waits for `work`, or for the failure because of which it will never be done."""
        failure = asyncio.ensure_future(self.failure())
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, failure), return_when=asyncio.FIRST_COMPLETED)
        if failure.done():
            task.cancel()
            failure.result()
        failure.cancel()
        await task

    def samples(self) -> Iterator[Sample]:
        """Every counter under its Kafka name. Taken in turns, it shows what is counted meanwhile."""
        yield from self._connections.samples()
        for api in self._registry:
            yield from api.counters.samples()
        yield from control_samples(self._control.image, self.node_id, self._control.leader_id)
        if self._services is not None:
            yield from self._services.replicas.samples()
            for topic in list(self._services.replicas.topics()):
                yield from topic_samples(topic)
        yield from process_samples()
        if self._cleaner is not None:
            yield from self._cleaner.samples()

    # -- from the bottom up

    def _bind_sockets(self) -> dict[str, socket.socket]:
        sockets: dict[str, socket.socket] = {}
        for listener in (*self.settings.listeners, *self.settings.controller_listeners):
            sockets[listener.name] = bound = self._inherited.pop(listener.name, None) or bind(listener)
            self._stack.callback(bound.close)
        self.advertised = [
            self._reachable(listener, sockets[listener.name].getsockname()[1])
            for listener in self.settings.advertised_listeners or self.settings.controller_listeners
        ]
        return sockets

    def _bind_door(self, setting: str) -> socket.socket | None:
        """The port of a door beside Kafka's; None when it stays shut."""
        address = addresses.parse_address(setting, self.settings[setting])
        if address is None or not self.is_broker:
            return None
        bound = self._inherited.pop(setting, None) or bind_door(setting, *address)
        self._stack.callback(bound.close)
        listener = self._reachable(addresses.Listener(setting, *address), bound.getsockname()[1])
        self._door_addresses[setting] = str(Address(listener.host, bound.getsockname()[1]))
        return bound

    def _topics_to_create(self) -> list[NewTopic]:
        path = self.settings[topics_file.SETTING]
        if path is None:
            return []
        try:
            return topics_file.parse_topics(Path(path).read_text(), path)
        except OSError as error:
            raise SettingError(topics_file.SETTING, path, f"cannot be read: {error.strerror}") from error

    async def _create_topics(self, topics: list[NewTopic]) -> None:
        async with Cluster(self.bootstrap_servers) as cluster:
            await topics_file.create_missing_topics(cluster, topics, max(1, len(self.settings.voters)))

    def _reachable(self, listener: addresses.Listener, bound_port: int) -> addresses.Listener:
        host = listener.host
        if host in EVERY_INTERFACE:
            host = self.settings.host_name or "localhost"
        return listener._replace(host=host, port=listener.port or bound_port)

    def _start_services(self, logs: LogManager, control: NodeControl) -> BrokerServices:
        """What a broker has beside its part in the quorum; it hears of the metadata once that is read."""
        loop = asyncio.get_running_loop()
        tasks = _Tasks(loop)
        links = ClusterLinks(
            LeaderConnections(self._address_of, self._connection_options("fetcher"), tasks.spawn),
            ControllerRequests(self._ask_controller, tasks.spawn),
            loop.call_later,
            lambda: control.broker_epoch,
        )
        replicas = ReplicaManager(
            self.node_id, logs, self.settings, self._clock, loop.call_soon, links, loop.call_soon_threadsafe
        )
        self._stack.callback(replicas.stop)
        moves = self._watch_directories(logs, replicas, control)

        timers = TimerWheel(self._clock, loop.call_later)
        surroundings = Surroundings(replicas, self.settings, self._clock, timers, LoopBackground(loop, self._executor))
        groups = GroupServices(surroundings)
        self._stack.callback(groups.stop)
        producer_ids = ProducerIds(lambda: allocate_producer_ids(control, self.node_id))
        transport = LeaderConnections(self._address_of, self._connection_options("transactions"), tasks.spawn)
        transactions = TransactionServices(
            surroundings,
            Neighbours(groups, transport, loop.call_soon, lambda: control.image, producer_ids.next_id),
        )
        self._stack.callback(transactions.stop)

        def apply(delta: MetadataDelta, image: ClusterImage) -> None:
            replicas.apply(delta, image)
            replicas.when_applied(lambda: applied(delta, image))

        def applied(delta: MetadataDelta, image: ClusterImage) -> None:
            groups.metadata_changed(delta, image)
            transactions.metadata_changed(delta, image)
            control.applied(image.next_offset)

        control.feed.subscribe(apply)
        housekeeping = Housekeeping(logs, replicas, self.settings, self._clock, self._executor)
        self._stack.callback(housekeeping.checkpoint)
        self._stack.push_async_callback(_end, self._spawn_background(housekeeping.run()))
        self._stack.push_async_callback(_end, self._spawn_background(self._clean_logs(logs, replicas, control)))
        return BrokerServices(logs, replicas, timers, housekeeping, groups, producer_ids, transactions, moves)

    def _watch_directories(
        self, logs: LogManager, replicas: ReplicaManager, control: NodeControl
    ) -> "ReplicaMoves | None":
        """With several of them the controller is told which replica lies where, and replicas can be moved."""
        if len(logs.directories) < 2:
            return None
        from sskafka.replication.directory_reports import DirectoryReports  # noqa: PLC0415
        from sskafka.replication.replica_moves import ReplicaMoves  # noqa: PLC0415

        reports = DirectoryReports(
            self.node_id, self._ask_controller, lambda: control.broker_epoch, replicas.directory_known_of
        )
        replicas.on_placed = lambda partition: reports.report_home(logs, partition)
        moves = ReplicaMoves(logs, replicas.maybe_find, reports, self._clock, self._executor)
        for work in (reports.run(), moves.run()):
            self._stack.push_async_callback(_end, self._spawn_background(work))
        return moves

    async def _clean_logs(self, logs: LogManager, replicas: ReplicaManager, control: NodeControl) -> None:
        """Compaction; imported once the start is over."""
        await asyncio.sleep(CLEANER_DELAY_S)
        from sskafka.replication.log_cleaner import LogCleaner  # noqa: PLC0415

        def settings() -> Settings:
            return effective_settings(self.settings, control.image)

        self._cleaner = LogCleaner(logs, replicas, settings, self._clock, self._executor)
        await self._cleaner.run()

    def _connection_options(self, purpose: str) -> ConnectionOptions:
        timeout_ms: int = self.settings["replica.socket.timeout.ms"]
        return ConnectionOptions(f"broker-{self.node_id}-{purpose}", timeout_ms, timeout_ms)

    def _address_of(self, broker_id: int) -> Address | None:
        """Where another broker listens for this one."""
        broker = self._control.image.brokers.get(broker_id)
        name = self.settings["inter.broker.listener.name"] or self.settings.listeners[0].name
        endpoint = broker.endpoint(name) if broker is not None else None
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    async def _ask_controller(self, request: Message, timeout_ms: int) -> Any:
        return await self._control.client.ask(request, timeout_ms)

    def _open_logs(self, background: LoopBackground) -> LogManager:
        """Directories that nobody has formatted yet are formatted here."""
        settings = self.settings
        report = format_storage(self._disk, settings, os.urandom, self._clock.now_ms(), ignore_formatted=True)
        self.cluster_id = report.cluster_id
        return LogManager.open(
            self._disk,
            settings.data_directories,
            node_id=self.node_id,
            metadata_path=settings.metadata_directory,
            partition_base=settings["log.dir.partition.base"],
            background=background,
        )

    def _registration(self, logs: LogManager) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=os.urandom(16),
            listeners=[
                RegisteredListener(item.name, item.host, item.port, addresses.SECURITY_PROTOCOLS[item.protocol])
                for item in self.advertised
            ],
            features=supported_features(),
            rack=self.settings["broker.rack"],
            log_dirs=[item.directory_id for item in logs.directories if item.directory_id is not None],
            previous_broker_epoch=logs.previous_broker_epoch,
        )

    def _listener(self, name: str, apis: dict[int, Api], counters: ConnectionCounters) -> Listener:
        settings = self.settings
        limits = ConnectionLimits(
            request_bytes_max=settings["socket.request.max.bytes"],
            idle_ms_max=settings["connections.max.idle.ms"],
            connections_max=settings["max.connections"],
            connections_per_ip_max=settings["max.connections.per.ip"],
            parked_max=settings["queued.max.requests"],
        )
        budget = settings["queued.max.request.bytes"]
        memory = RequestMemory(budget if budget > 0 else REQUEST_MEMORY_DEFAULT_BYTES)
        return Listener(name, apis, AllowAll(), limits, memory, counters, self._executor)

    async def _serve(self, sockets: dict[str, socket.socket]) -> None:
        settings = self.settings
        for item in settings.listeners:
            listener = self._listener(item.name, self._served.by_key, self._connections)
            await listener.start(sockets[item.name], settings["socket.listen.backlog.size"])
            self._stack.push_async_callback(listener.stop)
        self._stack.push_async_callback(self._drain_requests)

    def _maybe_open_http(
        self, bound: socket.socket | None, sockets: Mapping[str, socket.socket], control: NodeControl
    ) -> None:
        """The process behind the HTTP door, with what it must know; it is not waited for."""
        if bound is None:
            return
        from sskafka.servers.http.configuration import Configuration  # noqa: PLC0415
        from sskafka.servers.http.supervisor import HttpDoor  # noqa: PLC0415
        from sskafka.servers.local.answers import NodeAnswers  # noqa: PLC0415

        kafka = self.settings.listeners[0]
        configuration = Configuration(
            node_id=self.node_id,
            kafka_host="localhost" if kafka.host in EVERY_INTERFACE else kafka.host,
            kafka_port=sockets[kafka.name].getsockname()[1],
            lab_api=self.settings["lab.api"],
            allowed_hosts=self._own_host_names(),
            journal_file=journal_path(self.settings),
        )
        answers = NodeAnswers(self.node_id, control, self.samples).table() | self._adr.answers()
        self._http = HttpDoor(bound, configuration, answers)
        self._stack.push_async_callback(_end, self._spawn_background(self._http.run()))

    def _own_host_names(self) -> tuple[str, ...]:
        """Names by which HTTP requests may call this broker, beside those that everybody may use."""
        own = [self.settings.host_name, *(listener.host for listener in self.advertised)]
        return (*self.settings["http.allowed.hosts"], *(name for name in own if name))

    def _make_adr_door(self, services: BrokerServices, control: NodeControl) -> "AdrDoor":
        from sskafka.servers.adr.door import Door  # noqa: PLC0415
        from sskafka.servers.adr.local_partitions import LocalPartitions  # noqa: PLC0415
        from sskafka.servers.adr.remote_partitions import RemotePartitions  # noqa: PLC0415

        return Door(
            self.settings,
            lambda: control.image,
            control.client,
            LocalPartitions(services.replicas, self._clock, self._executor),
            RemotePartitions(lambda: Cluster(self.bootstrap_servers)),
            AllowAll(),
            self._clock,
            self._executor,
            self._spawn_request,
        )

    async def _open_adr(self, bound: socket.socket) -> None:
        from sskafka.servers.adr.listener import AdrListener  # noqa: PLC0415

        settings = self.settings
        frame_bytes_max, idle_ms_max = settings["socket.request.max.bytes"], settings["connections.max.idle.ms"]
        listener = AdrListener(self._adr.door, frame_bytes_max, idle_ms_max, settings["max.connections"])
        await listener.start(bound, settings["socket.listen.backlog.size"])
        self._stack.push_async_callback(listener.stop)

    async def _serve_quorum(self, control: NodeControl, sockets: dict[str, socket.socket]) -> None:
        """Controller listeners are served by the control loop itself: no load of data reaches them."""
        thread = control.thread
        registry = Registry(_Tasks(thread.loop).spawn)
        register_controller_apis(registry, control, self.settings, self.cluster_id)
        for item in self.settings.controller_listeners:
            listener = self._listener(item.name, registry.by_key, ConnectionCounters())
            await thread.call(listener.start(sockets[item.name], self.settings["socket.listen.backlog.size"]))
            self._stack.push_async_callback(_stop_on, thread, listener)

    # -- from the top down

    async def _drain_requests(self) -> None:
        """Let the requests that are being worked on finish."""
        if self._requests:
            await asyncio.wait(self._requests, timeout=DRAIN_TIMEOUT_S)

    # -- tasks

    def _spawn_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._background_ended)
        return task

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failed is not None and not self._failed.done():
            log.critical("the broker cannot go on: %s", error, exc_info=error)
            self._failed.set_exception(error)

    def _spawn_request(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)


class _Tasks:
    """Tasks of requests on a loop; held here, since the loop itself does not hold on to them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _stop_on(thread: ControlThread, listener: Listener) -> None:
    await thread.call(listener.stop())


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
