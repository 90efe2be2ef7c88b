"""The configuration that the broker sends to its HTTP process over the private socket."""

from typing import Any, NamedTuple

CONFIGURATION = "configuration"
OPENED = "opened"
"""The two requests that concern the HTTP process itself, not the broker's answers."""


class HttpSecurity(NamedTuple):
    """How clients of the HTTP server prove who they are, and how its process connects to brokers."""

    has_tls: bool = False
    mapping_rules: str | None = None
    """`ssl.principal.mapping.rules`, where the certificate of a client is its name; None: it is not."""
    mechanisms: tuple[str, ...] = ()
    """SASL mechanisms by which clients may log in; without any, clients need not log in."""
    failed_authentication_delay_ms: int = 0
    kafka_properties: dict[str, str] = {}
    """Client properties with which the process connects to brokers, with secrets."""
    acts_for_clients: bool = False
    """Whether brokers learn which client a request is for. Otherwise all clients share connections, and are
    anonymous."""

    def __repr__(self) -> str:
        return f"HttpSecurity(has_tls={self.has_tls}, mechanisms={self.mechanisms})"


class OtlpTarget(NamedTuple):
    """The OpenTelemetry collector to which metrics are pushed."""

    endpoint: str
    """Base URL."""
    headers: dict[str, str]
    interval_ms: int
    timeout_ms: int
    resource: dict[str, str]
    """Attributes of this node."""

    def __repr__(self) -> str:
        return f"OtlpTarget({self.endpoint}, {len(self.headers)} headers)"


class LogDirectories(NamedTuple):
    """The log directories of this broker, which the HTTP process reads for the viewer of segments."""

    data: tuple[str, ...] = ()
    metadata: str = ""
    partition_base: int = 0
    """`log.dir.partition.base`."""


class Configuration(NamedTuple):
    node_id: int
    kafka_address: tuple[str, int] | None
    """The address of this node; None for a controller, which serves no clients."""
    allowed_hosts: tuple[str, ...]
    """Host names that requests may use, besides localhost and IP addresses."""
    route_modules: dict[str, dict[str, Any]]
    """Modules with further routes, and the extra arguments of their function `routes`."""
    security: HttpSecurity = HttpSecurity()
    has_console: bool = True
    is_read_only: bool = False
    """Whether the routes under /api/v1 refuse changes."""
    otlp: OtlpTarget | None = None
    log_format: str = "text"
    log_directories: LogDirectories = LogDirectories()
    schema_directory: str = ""
    """Directory with schemas of topics; empty: none."""

    def to_json(self) -> dict[str, Any]:
        otlp = None if self.otlp is None else self.otlp._asdict()
        nested = {"security": self.security._asdict(), "log_directories": self.log_directories._asdict(), "otlp": otlp}
        return {**self._asdict(), **nested}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Configuration":
        address, security, otlp = values["kafka_address"], values["security"], values["otlp"]
        logs = values["log_directories"]
        return cls(
            **{
                **values,
                "allowed_hosts": tuple(values["allowed_hosts"]),
                "kafka_address": None if address is None else tuple(address),
                "otlp": None if otlp is None else OtlpTarget(**otlp),
                "log_directories": LogDirectories(**{**logs, "data": tuple(logs["data"])}),
                "security": HttpSecurity(**{**security, "mechanisms": tuple(security["mechanisms"])}),
            }
        )

    @property
    def is_broker(self) -> bool:
        return self.kafka_address is not None
