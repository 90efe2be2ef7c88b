"""Start and stop a node: from settings to sockets and disk, to services, to servers.

A node starts in this order and stops in reverse:

    sockets bound -> log directories locked -> metadata read -> quorum joined -> broker registered, replicas opened
    -> unfenced -> clients served -> the other servers start

Voters reach each other on the ports that clients use. So these ports open as soon as the metadata is read, but only for
other nodes. A node that is the only voter opens them last.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from sskafka.broker import on_demand
from sskafka.broker.api_handlers import serve_broker_apis, serve_controller_apis
from sskafka.broker.context import BrokerContext
from sskafka.broker.kafka_listeners import KafkaListeners
from sskafka.broker.other_servers import OtherServers, own_cluster
from sskafka.broker.quorum_discovery import with_discovered_voters
from sskafka.broker.services import BrokerServices
from sskafka.broker.sockets import ADR_LISTENER, HTTP_LISTENER, NodeSockets
from sskafka.controller.node_control import NodeControl
from sskafka.metadata.brokers.lifecycle import supported_features
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.quota_limits import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from sskafka.metadata.records import RESOURCE_BROKER
from sskafka.model.counters import ConnectionCounters, Sample
from sskafka.model.listeners import PLAINTEXT, SECURITY_PROTOCOLS, Endpoint
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.quorum.committed_metadata import Listener as MetadataListener
from sskafka.quorum.formatting import format_storage
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.runtime.background import LoopBackground
from sskafka.runtime.clock import Clock, SystemClock
from sskafka.runtime.control_thread import ControlThread
from sskafka.runtime.descriptors import ConnectionDescriptors, SpareDescriptors, limit
from sskafka.runtime.event_loop import new_event_loop
from sskafka.runtime.loop_watchdog import LoopWatchdog
from sskafka.runtime.selector import Selector
from sskafka.runtime.tasks import BackgroundTasks, RequestTasks
from sskafka.servers.kafka.authorization import AllowAll, Authorizer, FailedLoginRecorder, ignore_failed_login
from sskafka.servers.kafka.client_quotas import ClientQuotaManager, MutationQuota
from sskafka.servers.kafka.connection_quotas import ConnectionQuotas
from sskafka.servers.kafka.handlers.broker_identity import BrokerIdentityHandler
from sskafka.servers.kafka.listener import ConnectionLimits, Listener
from sskafka.servers.kafka.registry import Registry, ServedApis
from sskafka.servers.kafka.request_memory import RequestMemory
from sskafka.servers.kafka.served_api import ServedApi
from sskafka.servers.kafka.throttling import Throttling
from sskafka.servers.samples import broker_state, process_samples
from sskafka.storage.disk import OsDisk
from sskafka.storage.log_manager import LogManager
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest
from sskafka.wire.messages.broker_registration import Listener as RegisteredListener

if TYPE_CHECKING:
    from sskafka.lab.quorum_files import QuorumFiles
    from sskafka.servers.kafka.security.listener_security import ListenerSecurity

log = logging.getLogger(__name__)

THREADS = 4
REQUEST_MEMORY_DEFAULT_BYTES = 256 * 1024 * 1024
DRAIN_TIMEOUT_S = 5.0
IMPORT_DELAY_S = 0.02  # lets the line READY be printed first


class Broker:
    """One node: a broker, a voter of the metadata quorum, or both. Its data is served on the running event loop.

    `inherited`: sockets, by listener name, that the parent process has already bound.
    """

    def __init__(
        self, settings: Settings, clock: Clock | None = None, inherited: Mapping[str, socket.socket] | None = None
    ) -> None:
        self.settings = settings
        self.node_id = settings["node.id"]
        self.cluster_id = ""
        self.recovery = ""
        self._incarnation_id = os.urandom(16)
        self._clock = clock or SystemClock()
        self._spares = SpareDescriptors()
        self._disk = OsDisk(self._spares)
        self._descriptors = ConnectionDescriptors(limit())
        self._sockets = NodeSockets(settings, inherited or {})
        self._stack = AsyncExitStack()
        self._requests = RequestTasks()
        self._connections: dict[str, ConnectionCounters] = {}
        self._watchdog = LoopWatchdog()
        self._quotas = ConnectionQuotas(settings)
        self._controller_quotas = ConnectionQuotas(settings)
        self._registry = Registry(self._requests.spawn)
        self._audit: on_demand.AuditLog | None = None
        self._client_quotas = ClientQuotaManager(settings)
        self._throttling = Throttling(self._client_quotas, self._clock.monotonic_ms)
        self._served = ServedApis()
        self._request_memory = _request_memory(settings)
        self._services: BrokerServices | None = None
        self._other_servers: OtherServers | None = None
        self._security: on_demand.SecureListeners | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The advertised addresses, in the format of `bootstrap.servers`."""
        return self._sockets.bootstrap_servers

    @property
    def http_address(self) -> str | None:
        """host:port of the HTTP server; None if it is not configured."""
        return self._sockets.server_addresses.get(HTTP_LISTENER)

    @property
    def adr_address(self) -> str | None:
        """host:port of the ADR-0011 server; None if it is not configured."""
        return self._sockets.server_addresses.get(ADR_LISTENER)

    async def start(self) -> None:
        """Return when the Kafka listeners serve requests. If the start fails, clean up and raise the error."""
        self._background = BackgroundTasks()
        try:
            await self._start("broker" in self.settings["process.roles"])
        except BaseException:
            await self._stack.aclose()
            raise
        self._stack.callback(self._watchdog.stop)
        self._watchdog.start()

    async def servers_open(self) -> None:
        """Wait until every server accepts connections. The Kafka listeners already do when `start` returns."""
        if self._other_servers is not None:
            await self._background.unless_failed(self._other_servers.http_opened())

    async def stop(self) -> None:
        """Refuse new requests, flush all logs and write the clean-shutdown file."""
        await self._stack.aclose()

    async def failure(self) -> None:
        """Wait until a background task fails, and raise its error: the broker must not run without the task."""
        await self._background.failure()

    async def ask_controller(self, request: Any, timeout_ms: int) -> Any:
        """Send a request to the active controller with this node's own, unrestricted rights; return the response."""
        return await self._control.client.ask(request, timeout_ms)

    def samples(self) -> Iterator[Sample]:
        """Yield all metrics under their Kafka names. A caller that pauses in between sees values of different times."""
        yield from self._watchdog.samples()
        for counters in list(self._connections.values()):
            yield from counters.samples()
        yield from self._listeners.samples()
        if self._other_servers is not None:
            yield from self._other_servers.samples()
        for api in self._registry:
            yield from api.counters.samples()
        yield from self._control.samples()
        yield from process_samples()
        if self._services is not None:
            yield broker_state(is_active=self._control.image.is_active(self.node_id))
            yield from self._services.samples()

    # -- steps of a start

    async def _start(self, is_broker: bool) -> None:
        self.settings = await with_discovered_voters(self.settings)
        configured_topics = self._read_configured_topics()
        self._bind(is_broker)
        context = self._make_context()
        logs = self._open_logs(context)
        self._stack.callback(logs.release)
        control = self._control = self._make_control(context)
        self._stack.callback(lambda: logs.close(control.broker_epoch))
        self._authorizer = self._make_authorizer(control.feed.subscribe)
        services = self._services = BrokerServices(context, logs, control) if is_broker else None
        self._listeners = KafkaListeners(
            self.settings,
            self._sockets,
            partial(self._client_listener, context),
            lambda: on_demand.SecurityChanges(lambda: self._secure_listeners(context), self._authorizer),
        )
        control.feed.subscribe(self._apply_settings)
        await control.open()
        self._stack.push_async_callback(control.close)
        await self._serve_quorum(context, control)
        if services is None:
            await control.begin()
            self._other_servers = self._make_other_servers(context, control, None)
            self._other_servers.maybe_open_http(self.samples)
            return
        others = self._other_servers = self._make_other_servers(context, control, services)
        self._register_apis(services, others, control)
        await self._join_cluster(context, control, logs, others)
        await others.maybe_open_adr()
        context.run_in_background(self._import_client_decisions(context))
        if configured_topics is not None:
            context.run_in_background(
                configured_topics.create(own_cluster(self.settings, self._sockets, self._effective))
            )

    async def _import_client_decisions(self, context: BrokerContext) -> None:
        """Import in a thread what the first change of a client needs: the first topic would wait 10 ms for it."""
        if "controller" in self.settings["process.roles"]:
            await asyncio.sleep(IMPORT_DELAY_S)
            await asyncio.get_running_loop().run_in_executor(context.executor, lambda: on_demand.ClientDecisions)

    def _make_other_servers(
        self, context: BrokerContext, control: NodeControl, services: BrokerServices | None
    ) -> OtherServers:
        replicas = services.replicas if services is not None else None
        secure = partial(self._secure_listeners, context)
        return OtherServers(
            context,
            self._sockets,
            control,
            replicas,
            services.thread if services is not None else None,
            self._authorizer,
            secure,
            self._failed_login_recorder(),
            self.cluster_id,
        )

    def _read_configured_topics(self) -> "on_demand.ConfiguredTopics | None":
        if self.settings["topics.file"] is None:
            return None
        return on_demand.ConfiguredTopics.read(self.settings)

    def _bind(self, is_broker: bool) -> None:
        self._stack.callback(self._spares.close)
        self._stack.callback(self._sockets.close)
        self._sockets.bind_listeners()
        self._sockets.bind_other_servers(is_broker)

    def _make_context(self) -> BrokerContext:
        executor = ThreadPoolExecutor(THREADS, thread_name_prefix="sskafka-io")
        self._stack.callback(executor.shutdown)
        selector = Selector(asyncio.get_running_loop())
        self._stack.callback(selector.close)
        return BrokerContext(
            self.settings,
            self._clock,
            executor,
            self._background,
            self._requests,
            self._stack,
            self._descriptors,
            selector,
        )

    def _open_logs(self, context: BrokerContext) -> LogManager:
        """Format log directories that are not formatted yet."""
        settings = self.settings
        report = format_storage(
            self._disk, settings, os.urandom, self._clock.now_ms(), ignore_formatted=True, skip_unusable=True
        )
        self.cluster_id = report.cluster_id
        return LogManager.open(
            self._disk,
            settings.data_directories,
            node_id=self.node_id,
            metadata_path=settings.metadata_directory,
            partition_base=settings["log.dir.partition.base"],
            background=LoopBackground(asyncio.get_running_loop(), context.executor),
        )

    def _make_control(self, context: BrokerContext) -> NodeControl:
        settings, clock, executor, background, *_ = context
        return NodeControl(
            settings,
            self.cluster_id,
            self._disk,
            clock,
            executor,
            new_event_loop,
            background.fail,
            lambda *arguments: on_demand.ClientDecisions(*arguments),  # noqa: PLW0108  imported when it is called
            _observe_quorum,
        )

    def _register_apis(self, services: BrokerServices, others: OtherServers, control: NodeControl) -> None:
        identity = BrokerIdentityHandler(self.cluster_id, self.node_id, self._incarnation_id)
        serve_broker_apis(
            self._registry,
            services,
            control,
            self.settings,
            self._clock,
            self.cluster_id,
            self._listeners,
            {
                "broker_identity": lambda: identity,
                "adr": lambda: others.adr,
                "broker_load": lambda: on_demand.BrokerLoadHandler(
                    services.replicas, self._connections.values, lambda: (api.counters for api in self._registry)
                ),
                "segments": self._make_segment_handler,
            },
            self._mutation_quota(control),
        )
        if self.settings["controller.listener.names"]:
            self._registry.remove_controller_apis()

    def _make_segment_handler(self) -> "on_demand.SegmentHandler":
        settings = self.settings
        files = on_demand.PartitionFiles(
            settings.data_directories, settings.metadata_directory, settings["log.dir.partition.base"]
        )
        return on_demand.SegmentHandler(self.node_id, files)

    async def _join_cluster(
        self, context: BrokerContext, control: NodeControl, logs: LogManager, others: OtherServers
    ) -> None:
        """Start the HTTP server after the Kafka listeners. While the node waits for others, HTTP reports that."""
        if not control.is_alone:
            self._served.open_to_nodes(self._registry)
            await self._serve()
        await control.begin()
        if not control.is_alone:
            others.maybe_open_http(self.samples)
        await context.background.unless_failed(
            control.join(
                self._registration(logs, control.image),
                lambda: logs.offline_directory_ids,
                lambda: logs.cordoned_directory_ids,
            )
        )
        self.recovery = str(logs.recovery)
        self._served.open_to_all(self._registry)
        if control.is_alone:
            await self._serve()
            others.maybe_open_http(self.samples)
        self._stack.push_async_callback(control.leave)

    def _registration(self, logs: LogManager, image: ClusterImage) -> BrokerRegistrationRequest:
        advertised = self._listeners.advertised(effective_settings(self.settings, image))
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                RegisteredListener(item.name, item.host, item.port, SECURITY_PROTOCOLS[item.protocol])
                for item in advertised
            ],
            features=supported_features(),
            rack=self.settings["broker.rack"],
            log_dirs=[item.directory_id for item in logs.directories if item.directory_id is not None],
            previous_broker_epoch=logs.previous_broker_epoch,
        )

    # -- Kafka's listeners

    async def _serve(self) -> None:
        self._stack.push_async_callback(self._listeners.stop)
        await self._listeners.start()
        self._stack.push_async_callback(self._requests.drain, DRAIN_TIMEOUT_S)

    async def _serve_quorum(self, context: BrokerContext, control: NodeControl) -> None:
        """Serve controller listeners on the control loop, so that load on the data loop does not delay them."""
        thread = control.thread
        registry = Registry(RequestTasks().spawn)
        serve_controller_apis(registry, control, self.settings, self.cluster_id, self._mutation_quota(control))
        authorizer = await thread.call(self._controller_authorizer(control))
        memory = _request_memory(self.settings)
        for item in self.settings.controller_listeners:
            quotas = self._controller_quotas
            listener = self._listener(context, item, registry.by_key, quotas, authorizer, memory, None)
            await thread.call(listener.start(self._sockets[item.name], self.settings["socket.listen.backlog.size"]))
            self._stack.push_async_callback(_stop_on, thread, listener)

    def _apply_settings(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Apply changes of connection limits and listeners while the node runs."""
        if self._client_quotas.apply(image.client_quotas):
            self._apply_client_quotas()
        if any(resource.type == RESOURCE_BROKER for resource in delta.configs_changed):
            settings = effective_settings(self.settings, image)
            self._quotas.apply(settings)
            self._controller_quotas.apply(settings)
            if self._security is not None:
                self._security.apply(settings)
            if self._other_servers is not None:
                self._other_servers.apply(settings)
            self._apply_listeners(settings)

    def _apply_client_quotas(self) -> None:
        """Wrap the handlers only while clients have quotas, because measuring costs time for every request."""
        limits = self._client_quotas.limits
        has_quotas = any(limits.has(key) for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE))
        self._registry.wrap_handlers(self._throttling.wrap if has_quotas else None)
        for quotas in (self._quotas, self._controller_quotas):
            quotas.address_rates = limits.of_address if limits.has(CONNECTION_CREATION_RATE) else None

    def _mutation_quota(self, control: NodeControl) -> MutationQuota:
        return MutationQuota(self._client_quotas, self._clock.monotonic_ms, lambda: control.leader_id == self.node_id)

    def _apply_listeners(self, settings: Settings) -> None:
        """Open and close listeners. If this node cannot use values that the controller accepted, change nothing."""
        try:
            self._listeners.change_to(settings.listeners)
        except SettingError as error:
            log.error("the listeners are not changed: %s", error)

    def _client_listener(self, context: BrokerContext, address: Endpoint) -> Listener:
        listener = self._listener(
            context,
            address,
            self._served.by_key,
            self._quotas,
            self._authorizer,
            self._request_memory,
            context.selector,
        )
        if self._services is not None:
            listener.on_damaged_file = self._services.suspect_file
        return listener

    async def _controller_authorizer(self, control: NodeControl) -> Authorizer:
        """Return the authorizer of the control loop, which has one of its own."""
        return self._make_authorizer(control.direct.subscribe)

    def _audit_log(self) -> "on_demand.AuditLog | None":
        """Return the audit log, which both event loops share."""
        if self._audit is None and self.settings["audit.log"]:
            self._audit = on_demand.AuditLog(self.settings, self._clock.now_ms)
            self._stack.callback(self._audit.close)
        return self._audit

    def _failed_login_recorder(self) -> FailedLoginRecorder:
        audit = self._audit_log()
        return ignore_failed_login if audit is None else audit.record_failed_login

    def _make_authorizer(self, subscribe: Callable[[MetadataListener], None]) -> Authorizer:
        if not self.settings["authorizer.class.name"]:
            return AllowAll()
        authorizer = on_demand.AclAuthorizer(self.settings, self._clock.monotonic_ms, self._audit_log())
        subscribe(authorizer.metadata_changed)
        return authorizer

    def _listener(
        self,
        context: BrokerContext,
        address: Endpoint,
        apis: dict[int, ServedApi],
        quotas: ConnectionQuotas,
        authorizer: Authorizer,
        memory: RequestMemory,
        selector: Selector | None,
    ) -> Listener:
        settings = self.settings
        limits = ConnectionLimits(
            request_bytes_max=settings["socket.request.max.bytes"],
            idle_ms_max=settings["connections.max.idle.ms"],
            parked_max=settings["queued.max.requests"],
            arrival_ms_max=settings["socket.request.arrival.timeout.ms"],
            send_buffer_bytes=settings["socket.send.buffer.bytes"],
            receive_buffer_bytes=settings["socket.receive.buffer.bytes"],
        )
        listener = Listener(
            address.name,
            apis,
            authorizer,
            limits,
            quotas,
            memory,
            self._counters_of(address.name),
            context.executor,
            self._descriptors,
            self._security_of(context, address),
            selector,
        )
        listener.on_failed_login = self._failed_login_recorder()
        return listener

    def _counters_of(self, listener: str) -> ConnectionCounters:
        """Return the counters of a listener. They go on when the listener is closed and opened again."""
        return self._connections.setdefault(listener, ConnectionCounters(listener))

    def _security_of(self, context: BrokerContext, address: Endpoint) -> "ListenerSecurity | None":
        """Return how the clients of a listener are authenticated; None for PLAINTEXT."""
        return None if address.protocol == PLAINTEXT else self._secure_listeners(context).make(address)

    def _effective(self) -> Settings:
        """Return the settings in effect now."""
        return effective_settings(self.settings, self._control.image)

    def _secure_listeners(self, context: BrokerContext) -> "on_demand.SecureListeners":
        if self._security is None:
            settings = self._effective()
            self._security = on_demand.SecureListeners(settings, lambda: self._control.image)
            context.run_in_background(self._security.watch())
        return self._security


def _observe_quorum(log: MetadataLog, settings: Settings) -> "QuorumFiles | None":
    """Write the lab's readable files if the metadata log has a directory of its own."""
    if settings["metadata.log.dir"] is None:
        return None
    return on_demand.maybe_keep_files(log, settings)


def _request_memory(settings: Settings) -> RequestMemory:
    """Return the memory of large requests, which the listeners of one event loop share."""
    budget = settings["queued.max.request.bytes"]
    return RequestMemory(budget if budget > 0 else REQUEST_MEMORY_DEFAULT_BYTES)


async def _stop_on(thread: ControlThread, listener: Listener) -> None:
    await thread.call(listener.stop())
