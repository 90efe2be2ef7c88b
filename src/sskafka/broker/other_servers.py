"""The servers beside Kafka's: HTTP, which a child process serves, and the binary protocol of ADR-0011.

What they need is imported when one of them is configured: most brokers of a test have neither. A node that is only a
controller may have an HTTP server for its health and metrics; it has no records.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sskafka.broker.context import BrokerContext
from sskafka.broker.sockets import ADR_LISTENER, HTTP_LISTENER, NodeSockets
from sskafka.controller.node_control import NodeControl
from sskafka.model.counters import AcceptorCounters, Sample
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.adr.endpoints import AdrEndpoints
from sskafka.servers.kafka.authorization import AllowAll

if TYPE_CHECKING:
    from sskafka.servers.adr.service import AdrService
    from sskafka.servers.http.configuration import Configuration
    from sskafka.servers.http.supervisor import HttpServerProcess
    from sskafka.servers.local.server import Answer


class OtherServers:
    def __init__(
        self, context: BrokerContext, sockets: NodeSockets, control: NodeControl, replicas: ReplicaManager | None
    ) -> None:
        """`replicas`: None on a node that is only a controller."""
        self._context = context
        self._sockets = sockets
        self._control = control
        self._replicas = replicas
        self.adr = AdrEndpoints(self._make_adr_service)
        """Every broker has it: other brokers send it requests, whether this one has an ADR listener or not."""
        self._http: HttpServerProcess | None = None
        self._adr_acceptor: AcceptorCounters | None = None

    def maybe_open_http(self, samples: Callable[[], Iterator[Sample]]) -> None:
        """Start the HTTP process where http.listener is set, without waiting until it serves."""
        bound = self._sockets.server_socket(HTTP_LISTENER)
        if bound is None:
            return
        from sskafka.servers.http.configuration import Configuration  # noqa: PLC0415
        from sskafka.servers.http.supervisor import HttpServerProcess  # noqa: PLC0415
        from sskafka.servers.local.answers import NodeAnswers  # noqa: PLC0415

        settings, is_broker = self._context.settings, self._replicas is not None
        configuration = Configuration(
            node_id=settings["node.id"],
            kafka_address=self._sockets.own_kafka_address if is_broker else None,
            allowed_hosts=self._own_host_names(),
            route_modules={},
        )
        answers = NodeAnswers(settings["node.id"], self._control, samples, is_broker).table()
        if settings["lab.api"]:
            self._add_lab_api(configuration, answers)
        if is_broker:
            answers |= self.adr.answers()
        self._http = HttpServerProcess(bound, configuration, answers)
        self._context.run_in_background(self._http.run())

    def _add_lab_api(self, configuration: "Configuration", answers: "dict[str, Answer]") -> None:
        """Let callers of the HTTP server vote and name leaders."""
        from sskafka.lab.quorum_files import journal_path  # noqa: PLC0415
        from sskafka.lab.votes import VoteAnswers  # noqa: PLC0415

        configuration.route_modules["sskafka.lab.routes"] = {"journal_file": journal_path(self._context.settings)}
        answers |= VoteAnswers(self._control).table()

    def samples(self) -> Iterator[Sample]:
        if self._adr_acceptor is not None:
            yield from self._adr_acceptor.samples()

    async def http_opened(self) -> None:
        if self._http is not None:
            await self._http.opened()

    async def maybe_open_adr(self) -> None:
        self._context.stack.push_async_callback(self.adr.close)
        bound = self._sockets.server_socket(ADR_LISTENER)
        if bound is None:
            return
        from sskafka.servers.adr.listener import AdrListener  # noqa: PLC0415

        settings = self._context.settings
        listener = AdrListener(
            self.adr.service,
            frame_bytes_max=settings["socket.request.max.bytes"],
            idle_ms_max=settings["connections.max.idle.ms"],
            arrival_ms_max=settings["socket.request.arrival.timeout.ms"],
            connections_max=settings["max.connections"],
            descriptors=self._context.descriptors,
        )
        self._adr_acceptor = listener.acceptor_counters
        listener.start(bound, settings["socket.listen.backlog.size"])
        self._context.stack.push_async_callback(listener.stop)

    def _make_adr_service(self) -> "AdrService":
        from sskafka.client.cluster import Cluster  # noqa: PLC0415
        from sskafka.servers.adr.local_partitions import LocalPartitions  # noqa: PLC0415
        from sskafka.servers.adr.remote_partitions import RemotePartitions  # noqa: PLC0415
        from sskafka.servers.adr.service import AdrService  # noqa: PLC0415

        assert self._replicas is not None, "a controller has no records"
        settings, clock, executor, *_ = self._context
        return AdrService(
            settings,
            lambda: self._control.image,
            self._control.client,
            LocalPartitions(self._replicas, clock, executor),
            RemotePartitions(lambda: Cluster(self._sockets.bootstrap_servers)),
            AllowAll(),
            clock,
            executor,
            self._context.requests.spawn,
        )

    def _own_host_names(self) -> tuple[str, ...]:
        """Names by which HTTP requests may call this broker, beside those that everybody may use."""
        settings = self._context.settings
        own = [settings.host_name, *(listener.host for listener in self._sockets.advertised)]
        return (*settings["http.allowed.hosts"], *(name for name in own if name))
