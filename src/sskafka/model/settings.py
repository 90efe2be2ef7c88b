"""The settings of one broker: the type and the source of every value, and the values of weaker sources.

    topic override > dynamic, this broker > dynamic, all brokers > static (see setting_sources) > default

Within one source, a setting takes precedence over its coarser units: log.retention.ms, then .minutes, then .hours.
`Settings` is immutable: `with_dynamic` returns another one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from sskafka.model.cordoned_directories import check_cordoned_directories
from sskafka.model.dynamic_configs import known_setting
from sskafka.model.group_bounds import check_group_bounds, check_group_protocols
from sskafka.model.listeners import (
    HTTP_NAME,
    PLAINTEXT,
    SECURITY_PROTOCOLS,
    Endpoint,
    Voter,
    parse_address,
    parse_listeners,
    parse_protocol_map,
    parse_voters,
    protocol_of,
)
from sskafka.model.security.listener_settings import check_security, unknown_listener_names
from sskafka.model.setting import Fallback, Setting, SettingError, Value, split_list
from sskafka.model.setting_sources import ConfiguredValue, Layer, static_values
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS

if TYPE_CHECKING:
    from sskafka.model import setting_names as names


class DynamicLayers(NamedTuple):
    """Settings changed at run time, kept in the cluster's metadata."""

    this_broker: Layer
    all_brokers: Layer


class Settings:
    __slots__ = ("_last_dynamic", "_prefixes", "_values", "dynamic", "host_name", "static", "warnings")

    def __init__(
        self,
        static: Layer,
        dynamic: DynamicLayers,
        warnings: list[str] | None = None,
        host_name: str = "",
        prefixes: tuple[str, ...] = (),
    ) -> None:
        """`prefixes`: a name with one of these prefixes takes precedence over the name alone, the first one most."""
        self.static = static
        self.dynamic = dynamic
        self.warnings = warnings or []
        self.host_name = host_name
        self._prefixes = prefixes
        self._values: dict[str, Value] = {}  # filled on first use: most are never used
        self._last_dynamic: _Dynamic | None = None

    @classmethod
    def resolve(
        cls,
        file: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        *,
        host_name: str = "",
    ) -> "Settings":
        """Merge all sources. Raise SettingError for an invalid value. Problems with which a broker can start are in
        `.warnings`. `host_name`: the name of the machine, which is the advertised host if none is set.
        """
        warnings: list[str] = []
        static = static_values(file or {}, environment or {}, overrides or {}, warnings)
        settings = cls(static, DynamicLayers({}, {}), warnings, host_name)
        try:
            settings._check_addresses()
            check_group_bounds(settings)
            check_cordoned_directories(settings)
            check_group_protocols(settings)
            check_security(settings)
        except SettingError as error:
            raise SettingError(error.key, error.value, error.problem, settings.where(error.key)) from None
        settings.warnings += settings._unused_by_authorizer()
        settings.warnings += [
            f"{name} (from {settings.where(name)}): there is no such listener"
            for name in unknown_listener_names(settings)
        ]
        return settings

    def with_dynamic(self, this_broker: Mapping[str, str], all_brokers: Mapping[str, str]) -> "Settings":
        """Return these settings, overridden by the dynamic ones of the metadata. Invalid values are left out.

        The same object is returned until other dynamic settings are passed, with the values that it has resolved."""
        last = self._last_dynamic
        if last is None or last.this_broker != this_broker or last.all_brokers != all_brokers:
            layers = DynamicLayers(_dynamic_layer(this_broker), _dynamic_layer(all_brokers))
            settings = Settings(self.static, layers, self.warnings, self.host_name)
            last = self._last_dynamic = _Dynamic(dict(this_broker), dict(all_brokers), settings)
        return last.settings

    def _unused_by_authorizer(self) -> list[str]:
        """Warn about settings that protect nothing, because there is no authorizer."""
        if self["authorizer.class.name"]:
            return []
        set_names = [name for name in ("super.users", "audit.log") if self[name]]
        return [
            f"{name} (from {self.where(name)}): without authorizer.class.name every client may do everything"
            for name in set_names
        ]

    @overload
    def __getitem__(self, name: "names.Integer") -> int: ...
    @overload
    def __getitem__(self, name: "names.OptionalInteger") -> int | None: ...
    @overload
    def __getitem__(self, name: "names.Boolean") -> bool: ...
    @overload
    def __getitem__(self, name: "names.Float") -> float: ...
    @overload
    def __getitem__(self, name: "names.Text") -> str: ...
    @overload
    def __getitem__(self, name: "names.OptionalText") -> str | None: ...
    @overload
    def __getitem__(self, name: "names.List") -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, name: "names.OptionalList") -> tuple[str, ...] | None: ...
    @overload
    def __getitem__(self, name: str) -> Value: ...
    def __getitem__(self, name: str) -> Value:
        """Return the value in effect. Type checkers know its type by the name (setting_names.py)."""
        if name not in self._values:
            self._values[name] = self._effective(BROKER_SETTINGS[name])
        return self._values[name]

    def integer(self, name: str) -> int:
        """Return the value of an integer setting whose name is computed."""
        value = self[name]
        assert isinstance(value, int), f"{name} is not an integer setting"
        return value

    def for_listener(self, listener: str, mechanism: str | None = None) -> "Settings":
        """Return the settings of one listener, or of one SASL mechanism of it.

        `listener.name.LISTENER.MECHANISM.NAME` takes precedence over `listener.name.LISTENER.NAME`, and that over
        `NAME`."""
        of_listener = f"listener.name.{listener.lower()}."
        prefixes = (of_listener,) if mechanism is None else (f"{of_listener}{mechanism.lower()}.", of_listener)
        return Settings(self.static, self.dynamic, self.warnings, self.host_name, prefixes)

    def layers(self) -> tuple[Layer, Layer, Layer]:
        """The sources of a broker's values, strongest first."""
        return (self.dynamic.this_broker, self.dynamic.all_brokers, self.static)

    def where(self, name: str) -> str:
        """Return the source of the value, for people: a variable, a file, or 'default'."""
        return next((layer[name].where for layer in self.layers() if name in layer), "default")

    def topic_config(self, overrides: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """Return all topic settings, typed, by name: the topic's own value or else the broker's."""
        configured = validate_topic_configs(overrides or {})
        return MappingProxyType(
            {
                name: configured[name] if name in configured else self._topic_default(row)
                for name, row in TOPIC_SETTINGS.items()
            }
        )

    @property
    def data_directories(self) -> tuple[str, ...]:
        return self["log.dirs"]

    @property
    def metadata_directory(self) -> str:
        return self["metadata.log.dir"] or self.data_directories[0]

    @property
    def listeners(self) -> tuple[Endpoint, ...]:
        """The listeners of the broker, for clients and other brokers."""
        return tuple(item for item in self._all_listeners() if item.name not in self["controller.listener.names"])

    @property
    def controller_listeners(self) -> tuple[Endpoint, ...]:
        return tuple(item for item in self._all_listeners() if item.name in self["controller.listener.names"])

    @property
    def advertised_listeners(self) -> tuple[Endpoint, ...]:
        """The advertised listeners. The caller replaces port 0 by the port that was bound."""
        if self["advertised.listeners"] is None:
            return tuple(item._replace(host=item.host or self.host_name or "localhost") for item in self.listeners)
        controllers = self["controller.listener.names"]
        return tuple(item for item in self._all_advertised() if item.name not in controllers)

    @property
    def inter_broker_listener(self) -> str:
        """The listener between brokers: the one that is set, else the one named after its protocol, else the first."""
        if self["inter.broker.listener.name"] is not None:
            return str(self["inter.broker.listener.name"])
        names = [listener.name for listener in self.listeners]
        protocol: str = self["security.inter.broker.protocol"]
        return protocol if protocol in names else names[0]

    @property
    def inter_broker_endpoint(self) -> Endpoint:
        """The listener between brokers."""
        name = self.inter_broker_listener
        return next(listener for listener in self.listeners if listener.name == name)

    @property
    def http_endpoint(self) -> Endpoint | None:
        """The HTTP server, which has the security settings of a listener named HTTP; None if there is none."""
        address = parse_address("http.listener", self["http.listener"])
        return None if address is None else Endpoint(HTTP_NAME, *address, self["http.security.protocol"])

    @property
    def quorum_endpoint(self) -> Endpoint:
        """The kind of listener at which this node reaches voters: name and protocol, without an address.

        Without controller listeners, voters are reached at the listener between brokers."""
        names = self["controller.listener.names"]
        if not names:
            return self.inter_broker_endpoint._replace(host="", port=0)
        protocols = parse_protocol_map(self["listener.security.protocol.map"])
        return Endpoint(names[0].upper(), "", 0, protocol_of(names[0].upper(), protocols))

    @property
    def voters(self) -> tuple[Voter, ...]:
        return parse_voters(self["controller.quorum.voters"])

    def _all_listeners(self) -> tuple[Endpoint, ...]:
        protocols = parse_protocol_map(self["listener.security.protocol.map"])
        return parse_listeners("listeners", self["listeners"], protocols)

    def _all_advertised(self) -> tuple[Endpoint, ...]:
        protocols = parse_protocol_map(self["listener.security.protocol.map"])
        return parse_listeners("advertised.listeners", self["advertised.listeners"] or (), protocols)

    def _check_addresses(self) -> None:
        names = [listener.name for listener in self.listeners]
        _check_voters_know(self)
        if "broker" in self["process.roles"] and not names:
            raise SettingError("listeners", ",".join(self["listeners"]), "a broker needs a listener for its clients")
        between = self["inter.broker.listener.name"]
        if between is not None and between not in names:
            raise SettingError("inter.broker.listener.name", between, f"no such listener; there are {', '.join(names)}")
        protocol = self["security.inter.broker.protocol"]
        if protocol != PLAINTEXT and protocol not in names:
            problem = f"there is no listener {protocol}; name one of {', '.join(names)} in inter.broker.listener.name"
            raise SettingError("security.inter.broker.protocol", protocol, problem)
        self._check_protocols_known()
        if between is not None and self.where("security.inter.broker.protocol") != "default":
            problem = "only one of inter.broker.listener.name and security.inter.broker.protocol may be set"
            raise SettingError("security.inter.broker.protocol", protocol, problem)
        if self["controller.quorum.bootstrap.servers"]:
            self._check_bootstrap_servers()
        known = {listener.name for listener in self._all_listeners()}
        for advertised in self._all_advertised():
            if advertised.name not in known:
                text = ",".join(self["advertised.listeners"] or ())
                raise SettingError("advertised.listeners", text, f"{advertised.name} is not among listeners")

    def _check_protocols_known(self) -> None:
        """Raise SettingError for a listener without a protocol on a node whose other listeners are protected.

        Nodes without any protection may omit the protocol, which is then PLAINTEXT."""
        protocol_map = self["listener.security.protocol.map"]
        known = {*parse_protocol_map(protocol_map), *SECURITY_PROTOCOLS}
        listeners = self._all_listeners()
        unknown = [listener.name for listener in listeners if listener.name not in known]
        if unknown and any(listener.protocol != PLAINTEXT for listener in listeners):
            problem = f"No security protocol defined for listener {', '.join(unknown)}"
            raise SettingError("listener.security.protocol.map", protocol_map, problem)

    def _check_bootstrap_servers(self) -> None:
        """Require controller.quorum.voters on controllers. Bootstrap servers are enough for a broker."""
        servers = self["controller.quorum.bootstrap.servers"]
        for server in servers:
            parse_address("controller.quorum.bootstrap.servers", server)
        if "controller" in self["process.roles"] and not self.voters and len(servers) > 1:
            problem = "a controller must know every voter: list them in controller.quorum.voters as id@host:port"
            raise SettingError("controller.quorum.bootstrap.servers", ",".join(servers), problem)

    def with_voters(self, voters: str) -> "Settings":
        """Return these settings with the voters of the quorum that another node has returned."""
        configured = ConfiguredValue(voters, split_list(voters), "controller.quorum.bootstrap.servers")
        static = {**self.static, "controller.quorum.voters": configured}
        return Settings(static, self.dynamic, self.warnings, self.host_name)

    def _effective(self, setting: Setting) -> Value:
        for name in (prefix + setting.name for prefix in self._prefixes):
            for layer in self.layers():
                if name in layer:
                    return layer[name].value
        found = _first_set(setting, self.layers())
        if found is not None:
            return found
        return default_of(setting)

    def _topic_default(self, setting: Setting) -> Value:
        return self[setting.fallbacks[0].name] if setting.fallbacks else setting.default


class _Dynamic(NamedTuple):
    """Settings with dynamic ones, and the configs that they were made of."""

    this_broker: dict[str, str]
    all_brokers: dict[str, str]
    settings: Settings


def spellings(setting: Setting) -> tuple[Fallback, ...]:
    """Return the names that may set this setting: its own and those of its fallbacks, strongest first."""
    return (Fallback(setting.name), *setting.fallbacks)


def default_of(setting: Setting) -> Value:
    """Return the default, taken from a coarser unit if the setting itself has none."""
    for name, factor, _ in spellings(setting):
        default = BROKER_SETTINGS[name].default
        if default is not None:
            return _scaled(default, factor)
    return None


def validate_topic_configs(configs: Mapping[str, str | None]) -> dict[str, Value]:
    """Return the typed values of a topic's own settings; raise SettingError, which names the key, if one is invalid."""
    values = {name: topic_setting(name).parse(_not_null(name, text)) for name, text in configs.items()}
    least, most = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        text = f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        problem = f"more than max.compaction.lag.ms, which is {most}"
        raise SettingError("min.compaction.lag.ms", str(least), problem, kafka_text=text)
    return values


def topic_setting(name: str) -> Setting:
    if name not in TOPIC_SETTINGS:
        raise SettingError(name, None, "unknown topic setting", kafka_text=f"Unknown topic config name: {name}")
    return TOPIC_SETTINGS[name]


def _not_null(name: str, text: str | None) -> str:
    if text is None:
        raise SettingError(name, None, "null is not a value", kafka_text=f"Null value not supported for : {name}")
    return text


def _first_set(setting: Setting, layers: tuple[Layer, ...]) -> Value:
    for layer in layers:
        for name, factor, _ in spellings(setting):
            if name in layer and layer[name].value is not None:
                return _scaled(layer[name].value, factor)
    return None


def _scaled(value: Value, factor: int) -> Value:
    """Convert a value from a coarser unit. Negative numbers mean 'no limit' in every unit."""
    if factor == 1 or not isinstance(value, int):
        return value
    return value * factor if value >= 0 else value


def _dynamic_layer(configs: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for name, text in configs.items():
        setting = known_setting(name)
        try:
            layer[name] = ConfiguredValue(text, setting.parse(text) if setting else text, "cluster metadata")
        except SettingError:
            continue
    return layer


def _check_voters_know(settings: Settings) -> None:
    """Raise SettingError for a controller that is not a voter: it could never join the quorum."""
    voters = settings.voters
    node_id = settings["node.id"]
    if voters and "controller" in settings["process.roles"] and node_id not in {voter.id for voter in voters}:
        text = ",".join(settings["controller.quorum.voters"])
        raise SettingError("controller.quorum.voters", text, f"node.id {node_id} is a controller but not listed here")
