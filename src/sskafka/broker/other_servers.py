"""The other servers of a node: HTTP, in a child process, and the binary protocol of ADR-0011.

Their modules are imported only if one of the two is configured, because most brokers in tests have neither. A node that
is only a controller may have an HTTP server for its health and metrics, but no ADR server, because it has no records.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from sskafka.broker import on_demand
from sskafka.broker.context import BrokerContext
from sskafka.broker.sockets import ADR_LISTENER, HTTP_LISTENER, NodeSockets
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.node_security import link_properties, link_security
from sskafka.controller.node_control import NodeControl
from sskafka.metadata.effective_settings import effective_settings
from sskafka.model.counters import AcceptorCounters, ConnectionCounters, Sample
from sskafka.model.ids import CHALLENGE_CLUSTER_ID
from sskafka.model.listeners import PLAINTEXT, Endpoint
from sskafka.model.security.listener_settings import client_auth, enabled_mechanisms, http_serves_records
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.serial_thread import SerialThread
from sskafka.servers.kafka.authorization import Authorizer, FailedLoginRecorder

if TYPE_CHECKING:
    from sskafka.servers.local.server import Answer

_log = logging.getLogger(__name__)

LAB_ROUTES, LAB_STATE_ROUTES = "sskafka.lab.routes", "sskafka.lab.state_routes"
CHALLENGE_ROUTES = "sskafka.challenge.state_routes"
"""Modules that the HTTP process imports by name, because they are for few brokers or in layers above this one."""


def own_cluster(
    settings: Settings, sockets: NodeSockets, current: Callable[[], Settings] | None = None
) -> "on_demand.Cluster":
    """Return a client of this broker, connected to its listener between brokers.

    `current` returns the settings in effect when a connection is opened."""
    between = settings.inter_broker_endpoint
    config = configured(ConnectionConfig, link_properties(settings, between))
    return on_demand.Cluster([sockets.own_kafka_address], config, security=link_security(settings, between, current))


class OtherServers:
    def __init__(
        self,
        context: BrokerContext,
        sockets: NodeSockets,
        control: NodeControl,
        replicas: ReplicaManager | None,
        thread: SerialThread | None,
        authorizer: Authorizer,
        secure: "Callable[[], on_demand.SecureListeners]",
        on_failed_login: FailedLoginRecorder,
        cluster_id: str,
    ) -> None:
        """`replicas` and `thread`: None on a node that is only a controller."""
        self._cluster_id = cluster_id
        self._on_failed_login = on_failed_login
        self._context = context
        self._sockets = sockets
        self._control = control
        self._replicas = replicas
        self._thread = thread
        self._authorizer = authorizer
        self._secure = secure
        self._counters = ConnectionCounters("HTTP")
        self._logins: on_demand.LoginAnswers | None = None
        self._http_tls: on_demand.ChangingOptions | None = None
        self._links: on_demand.ChangingOptions | None = None
        self._http: on_demand.HttpServerProcess | None = None
        self._adr_acceptor: AcceptorCounters | None = None

    @cached_property
    def adr(self) -> "on_demand.AdrEndpoints":
        """The ADR service. Other brokers send requests to it even if this broker has no ADR listener."""
        return on_demand.AdrEndpoints(self._make_adr_service)

    def maybe_open_http(self, samples: Callable[[], Iterator[Sample]]) -> None:
        """Start the HTTP process if http.listener is set. Does not wait until it serves."""
        bound = self._sockets.server_socket(HTTP_LISTENER)
        if bound is None:
            _check_not_exported(self._context.settings)
            return
        settings, is_broker = self._context.settings, self._replicas is not None
        http = settings.http_endpoint
        assert http is not None, "its socket is bound"
        serves_records = is_broker and self._serves_records(settings, http)
        configuration = on_demand.Configuration(
            node_id=settings["node.id"],
            kafka_address=self._sockets.own_kafka_address if serves_records else None,
            allowed_hosts=self._own_host_names(),
            route_modules={},
            security=_http_security(settings, http, serves_records=serves_records),
            has_console=settings["console.enable"],
            is_read_only=settings["console.read.only"],
            schema_directory=settings["console.schema.dir"],
            otlp=self._otlp_target(settings),
            log_format=settings["log.format"],
            log_directories=on_demand.LogDirectories(
                settings.data_directories, settings.metadata_directory, settings["log.dir.partition.base"]
            ),
        )
        answers = on_demand.NodeAnswers(settings["node.id"], self._control, samples, is_broker).table()
        if http.protocol != PLAINTEXT:
            self._logins = self._make_logins(http)
            answers |= self._logins.table()
        if settings.listeners and settings.inter_broker_endpoint.protocol != PLAINTEXT:
            now = link_properties(self._effective_settings(), settings.inter_broker_endpoint)
            self._links = on_demand.ChangingOptions(now)
            answers["link_properties"] = self._links.newer
        if settings["lab.api"]:
            self._add_lab_api(configuration, answers)
        if self._cluster_id == CHALLENGE_CLUSTER_ID:
            configuration.route_modules[CHALLENGE_ROUTES] = {}
        if is_broker:
            answers |= self.adr.answers()
        self._http = on_demand.HttpServerProcess(bound, configuration, answers)
        self._context.run_in_background(self._http.run())

    def _make_logins(self, http: Endpoint) -> "on_demand.LoginAnswers":
        """Raise SettingError where keys, certificates or mechanisms cannot be used."""
        secure = self._secure()
        mechanisms = secure.sasl(http).mechanisms if http.uses_sasl else {}
        if http.uses_tls:
            self._http_tls = on_demand.ChangingOptions(secure.tls_options(http).to_json())
        return on_demand.LoginAnswers(
            mechanisms, self._authorizer, self._counters, self._http_tls, self._on_failed_login
        )

    def _effective_settings(self) -> Settings:
        return effective_settings(self._context.settings, self._control.image)

    def apply(self, settings: Settings) -> None:
        """Use other certificates for new connections to the HTTP server, and other logins for those of its process."""
        http = settings.http_endpoint
        if self._http_tls is not None and http is not None:
            options = on_demand.tls_options(settings, http.name, client_auth(settings, http))
            self._http_tls.change_to(options.to_json())
        if self._links is not None:
            self._links.change_to(link_properties(settings, settings.inter_broker_endpoint))

    def _add_lab_api(self, configuration: "on_demand.Configuration", answers: "dict[str, Answer]") -> None:
        """Accept votes and leader announcements from callers of the HTTP server."""
        settings = self._context.settings
        journal_file = on_demand.journal_path(settings)
        configuration.route_modules[LAB_ROUTES] = {"journal_file": journal_file}
        configuration.route_modules[LAB_STATE_ROUTES] = {
            "journal_file": journal_file,
            "quorum_state_file": on_demand.quorum_state_path(settings),
            "settings": {name: str(settings[name]).lower() for name in on_demand.LAB_SETTINGS},
        }
        answers |= on_demand.VoteAnswers(self._control).table()

    def samples(self) -> Iterator[Sample]:
        if self._adr_acceptor is not None:
            yield from self._adr_acceptor.samples()
        if self._logins is not None:
            yield self._counters.failed_authentication_sample()

    async def http_opened(self) -> None:
        if self._http is not None:
            await self._http.opened()

    async def maybe_open_adr(self) -> None:
        self._context.stack.push_async_callback(self._close_adr)
        bound = self._sockets.server_socket(ADR_LISTENER)
        if bound is None:
            return
        settings = self._context.settings
        listener = on_demand.AdrListener(
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

    async def _close_adr(self) -> None:
        if "adr" in self.__dict__:
            await self.adr.close()

    def _make_adr_service(self) -> "on_demand.AdrService":
        assert self._replicas is not None, "a controller has no records"
        assert self._thread is not None
        settings, clock, executor, *_ = self._context
        return on_demand.AdrService(
            settings,
            lambda: self._control.image,
            self._control.client,
            on_demand.LocalPartitions(self._replicas, clock, executor, self._thread),
            on_demand.RemotePartitions(lambda: own_cluster(settings, self._sockets, self._effective_settings)),
            self._authorizer,
            clock,
            executor,
            self._context.requests.spawn,
        )

    def _serves_records(self, settings: Settings, http: Endpoint) -> bool:
        if http_serves_records(settings, http):
            return True
        _log.warning(
            "the HTTP server has health and metrics alone: its clients are anonymous, and the Kafka listeners need "
            "authentication; set http.security.protocol=SASL_SSL, or authorizer.class.name"
        )
        return False

    def _otlp_target(self, settings: Settings) -> "on_demand.OtlpTarget | None":
        if not settings["otel.exporter.otlp.endpoint"]:
            return None
        own = {"service.name": settings["otel.service.name"], "service.instance.id": str(settings["node.id"])}
        return on_demand.OtlpTarget(
            settings["otel.exporter.otlp.endpoint"],
            _pairs("otel.exporter.otlp.headers", (settings["otel.exporter.otlp.headers"] or "").split(",")),
            settings["otel.metric.export.interval"],
            settings["otel.exporter.otlp.timeout"],
            own | _pairs("otel.resource.attributes", settings["otel.resource.attributes"]),
        )

    def _own_host_names(self) -> tuple[str, ...]:
        """Host names that HTTP requests to this broker may use, in addition to those that are always accepted."""
        settings = self._context.settings
        own = [settings.host_name, *(listener.host for listener in self._sockets.advertised)]
        return (*settings["http.allowed.hosts"], *(name for name in own if name))


def _check_not_exported(settings: Settings) -> None:
    endpoint = settings["otel.exporter.otlp.endpoint"]
    if endpoint:
        problem = "the HTTP process pushes metrics: set http.listener, too"
        raise SettingError("otel.exporter.otlp.endpoint", endpoint, problem)


def _pairs(setting: str, items: Iterable[str]) -> dict[str, str]:
    """Return the values by name of `name=value` items."""
    pairs = [item.strip().partition("=") for item in items if item.strip()]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise SettingError(setting, None, "expected a list of name=value, with commas in between")
    return {name: value for name, _, value in pairs}


def _http_security(settings: Settings, http: Endpoint, *, serves_records: bool) -> "on_demand.HttpSecurity":
    between = settings.inter_broker_endpoint if serves_records else None
    names_by_certificate = http.uses_tls and not http.uses_sasl
    rules = settings.for_listener(http.name)["ssl.principal.mapping.rules"]
    return on_demand.HttpSecurity(
        has_tls=http.uses_tls,
        mapping_rules=rules if names_by_certificate else None,
        mechanisms=enabled_mechanisms(settings, http.name) if http.uses_sasl else (),
        failed_authentication_delay_ms=settings["connection.failed.authentication.delay.ms"],
        kafka_properties=link_properties(settings, between) if between is not None else {},
        acts_for_clients=between is not None and (http.protocol, between.protocol) != (PLAINTEXT, PLAINTEXT),
    )
