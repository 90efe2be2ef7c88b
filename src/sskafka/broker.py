"""The composition root: settings become a clock, a disk and sockets, those become services, those become servers.

Nothing else wires parts together. Starting goes from the bottom up, stopping from the top down:

    sockets bound -> log directories locked -> metadata replayed -> replicas opened -> Kafka port served
"""

import asyncio
import logging
import os
import random
import socket
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from sskafka.client.clock import SystemClock
from sskafka.metadata.broker_lifecycle import start_single_broker, supported_features
from sskafka.metadata.producer_ids import allocate_producer_ids
from sskafka.model import listeners as addresses
from sskafka.model.clock import Clock
from sskafka.model.counters import ConnectionCounters, Sample
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from sskafka.model.settings import Settings
from sskafka.quorum.formatting import format_storage
from sskafka.quorum.local import LocalController
from sskafka.quorum.metadata_log import metadata_log_config
from sskafka.replication.housekeeping import Housekeeping
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.timer_wheel import TimerWheel
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.handlers.api_versions import ApiVersionsHandler
from sskafka.servers.kafka.handlers.cluster import ClusterHandler
from sskafka.servers.kafka.handlers.configs import ConfigHandlers
from sskafka.servers.kafka.handlers.fetch import FetchHandler
from sskafka.servers.kafka.handlers.fetch_sessions import FetchSessions
from sskafka.servers.kafka.handlers.log_dirs import LogDirsHandler
from sskafka.servers.kafka.handlers.metadata import MetadataHandler
from sskafka.servers.kafka.handlers.offsets import OffsetHandlers
from sskafka.servers.kafka.handlers.produce import ProduceHandler
from sskafka.servers.kafka.handlers.producers import ProducerHandlers, ProducerIds
from sskafka.servers.kafka.handlers.topic_partitions import TopicPartitionsHandler
from sskafka.servers.kafka.handlers.topics import TopicHandlers
from sskafka.servers.kafka.listener import ConnectionLimits, Listener
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request_memory import RequestMemory
from sskafka.servers.kafka.sockets import bind
from sskafka.servers.kafka.topic_creation import TopicCreation
from sskafka.storage.disk import OsDisk
from sskafka.storage.log_manager import LogManager
from sskafka.storage.loop_background import LoopBackground
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest
from sskafka.wire.messages.broker_registration import Listener as RegisteredListener

log = logging.getLogger(__name__)

THREADS = 4  # they sit in fsync and cold reads
REQUEST_MEMORY_DEFAULT_BYTES = 256 * 1024 * 1024
DRAIN_TIMEOUT_S = 5.0
EVERY_INTERFACE = {"", "0.0.0.0", "::"}


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed (the extra `fast`), the standard loop otherwise; the same code runs on both."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class Services(NamedTuple):
    """What the handlers are made from."""

    logs: LogManager
    controller: LocalController
    replicas: ReplicaManager
    timers: TimerWheel
    view: ClusterView
    housekeeping: Housekeeping
    broker_epoch: int


class Broker:
    """One broker with its own controller, on the running event loop.

    `inherited` has sockets, by listener name, that whoever started this process has bound already.
    """

    def __init__(
        self, settings: Settings, clock: Clock | None = None, inherited: Mapping[str, socket.socket] | None = None
    ) -> None:
        self.settings = settings
        self.node_id: int = settings["node.id"]
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
        self._services: Services | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that clients are told, as `bootstrap.servers` takes them."""
        return ",".join(f"{listener.host}:{listener.port}" for listener in self.advertised)

    async def start(self) -> None:
        """Returns when the Kafka port answers; raises what kept the broker from starting, and leaves nothing behind."""
        self._failed = asyncio.get_running_loop().create_future()
        try:
            sockets = self._bind_sockets()
            self._services = await self._start_services()
            self._register_apis(self._services)
            await self._serve(sockets)
        except BaseException:
            await self._stack.aclose()
            raise

    async def stop(self) -> None:
        """Refuse new requests, put everything on the disk and leave the mark of a clean stop."""
        await self._stack.aclose()

    async def failure(self) -> None:
        """Waits until a background task dies, and raises what killed it: the broker must not go on without it."""
        assert self._failed is not None, "the broker has not been started"
        await asyncio.shield(self._failed)

    def samples(self) -> Iterator[Sample]:
        """Every counter under its Kafka name."""
        yield from self._connections.samples()
        for api in self._registry:
            yield from api.counters.samples()
        if self._services is not None:
            for topic in self._services.replicas.topics():
                yield from topic.counters.samples(topic.name)

    # -- from the bottom up

    def _bind_sockets(self) -> dict[str, socket.socket]:
        sockets: dict[str, socket.socket] = {}
        for listener in self.settings.listeners:
            sockets[listener.name] = bound = self._inherited.pop(listener.name, None) or bind(listener)
            self._stack.callback(bound.close)
        self.advertised = [
            self._reachable(listener, sockets[listener.name].getsockname()[1])
            for listener in self.settings.advertised_listeners
        ]
        return sockets

    def _reachable(self, listener: addresses.Listener, bound_port: int) -> addresses.Listener:
        host = listener.host
        if host in EVERY_INTERFACE:
            host = self.settings.host_name or "localhost"
        return listener._replace(host=host, port=listener.port or bound_port)

    async def _start_services(self) -> Services:
        loop = asyncio.get_running_loop()
        executor = ThreadPoolExecutor(THREADS, thread_name_prefix="sskafka-io")
        self._stack.callback(executor.shutdown)
        self._executor = executor
        logs = self._open_logs(LoopBackground(loop, executor))
        self._stack.callback(logs.release)
        controller = await self._start_controller(logs, executor)
        broker_epoch = await self._register(controller, logs)
        replicas = ReplicaManager(self.node_id, logs, self.settings, self._clock, loop.call_soon)
        controller.subscribe(replicas.apply)
        housekeeping = Housekeeping(logs, replicas, self.settings, self._clock, executor)
        self._stack.callback(logs.close, broker_epoch)
        self._stack.callback(housekeeping.checkpoint)
        self._stack.push_async_callback(_end, self._spawn_background(housekeeping.run()))
        view = ClusterView(self.cluster_id, lambda: controller.image, lambda: controller.controller_id)
        timers = TimerWheel(self._clock, loop.call_later)
        return Services(logs, controller, replicas, timers, view, housekeeping, broker_epoch)

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

    async def _start_controller(self, logs: LogManager, executor: ThreadPoolExecutor) -> LocalController:
        metadata_log = logs.open_log(
            TopicPartition(METADATA_TOPIC, 0),
            METADATA_TOPIC_ID,
            metadata_log_config(self.settings),
            self._clock.now_ms(),
            directory=logs.metadata_directory,
        )
        controller = LocalController(metadata_log, self.settings, self._clock, executor)
        await controller.start()
        self._stack.push_async_callback(_finish, controller, self._spawn_background(controller.run()))
        return controller

    async def _register(self, controller: LocalController, logs: LogManager) -> int:
        request = BrokerRegistrationRequest(
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
        response = await controller.submit(
            lambda image: start_single_broker(image, request, self.cluster_id, self.settings)
        )
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode(response.error_code)
            raise KafkaError(code, f"broker {self.node_id} could not be registered: {code.name}")
        return response.broker_epoch

    def _register_apis(self, services: Services) -> None:
        registry, settings, clock = self._registry, self.settings, self._clock
        logs, controller, replicas, timers, view, housekeeping, _ = services
        sessions = FetchSessions(settings["max.incremental.fetch.session.cache.slots"], random.randint)
        produce = ProduceHandler(replicas, clock, timers)
        fetch = FetchHandler(replicas, sessions, clock, timers, settings["fetch.max.bytes"])
        registry.add(ApiKey.PRODUCE, produce.handle, advertised_min=0)  # older librdkafka compresses only then
        registry.add(ApiKey.FETCH, fetch.handle)
        registry.add(ApiKey.API_VERSIONS, ApiVersionsHandler(registry, view).handle)
        MetadataHandler(view, TopicCreation(controller, settings, os.urandom)).register(registry)
        TopicPartitionsHandler(view, settings["max.request.partition.size.limit"]).register(registry)
        ClusterHandler(view).register(registry)
        TopicHandlers(controller, settings, os.urandom).register(registry)
        ConfigHandlers(self.node_id, controller, settings).register(registry)
        OffsetHandlers(replicas, housekeeping.keep_log_starts).register(registry)
        ProducerHandlers(replicas, ProducerIds(self._allocate_producer_ids)).register(registry)
        LogDirsHandler(logs, replicas).register(registry)

    async def _allocate_producer_ids(self) -> range:
        assert self._services is not None
        request = AllocateProducerIdsRequest(self.node_id, self._services.broker_epoch)
        response = await self._services.controller.submit(lambda image: allocate_producer_ids(image, request))
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(response.error_code), "no producer ids could be had from the controller")
        return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)

    async def _serve(self, sockets: dict[str, socket.socket]) -> None:
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
        for name, bound in sockets.items():
            listener = Listener(
                name, self._registry.by_key, AllowAll(), limits, memory, self._connections, self._executor
            )
            await listener.start(bound, settings["socket.listen.backlog.size"])
            self._stack.push_async_callback(listener.stop)
        self._stack.push_async_callback(self._drain_requests)

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
        if error is not None and self._failed is not None and not self._failed.done():
            log.critical("a background task died; the broker cannot go on", exc_info=error)
            self._failed.set_exception(error)

    def _spawn_request(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)


async def _finish(controller: LocalController, task: asyncio.Task[None]) -> None:
    """Let the controller finish what was submitted to it."""
    controller.stop()
    await asyncio.wait([task])


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
