"""The sources of a broker's settings (file, environment, command line), and how they are merged.

Precedence, strongest first:

    --set key=value
    SSKAFKA_KEY             LOG_RETENTION_MS for log.retention.ms
    BROKER_ID, MAX_SEGMENT_SIZE_BYTES, BROKERS
    server.properties
    the addresses of this node in BROKERS
    default

Unknown keys do not stop a broker, except those that promise protection (PROTECTION_PREFIXES). They are kept, and a
warning names the nearest known key.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sskafka.model.dynamic_configs import base_name
from sskafka.model.setting import Setting, SettingError, Value, nearest
from sskafka.model.settings_table import (
    ALIASES,
    BROKER_SETTINGS,
    KAFKA_ONLY_PREFIXES,
    REMOVED_PREFIXES,
    TOPIC_SETTINGS,
    missing_protection,
)

ENVIRONMENT_PREFIX = "SSKAFKA_"
LAB_ENVIRONMENT = {"BROKER_ID": "node.id", "MAX_SEGMENT_SIZE_BYTES": "log.segment.bytes"}
LAB_BROKERS = "BROKERS"
LAB_KAFKA_PORT = 9092
IMPLIED_BY_LAB_BROKERS = ("listeners", "advertised.listeners", "http.listener")
COMMAND_LINE_ONLY = frozenset({"SSKAFKA_BOOTSTRAP"})


class ConfiguredValue(NamedTuple):
    """A value of a setting, and the file, environment variable or option that sets it."""

    text: str
    value: Value
    where: str


class LabBroker(NamedTuple):
    """One entry of BROKERS: id@host:http_port[:kafka_port]."""

    id: int
    host: str
    http_port: int
    kafka_port: int


Layer = dict[str, ConfiguredValue]


def static_values(
    file: Mapping[str, str], environment: Mapping[str, str], overrides: Mapping[str, str], warnings: list[str]
) -> Layer:
    """Merge all layers. Problems with which the broker can start are added to `warnings`."""
    stated: Layer = {}
    stated |= _read_layer(((key, text, "server.properties") for key, text in file.items()), warnings)
    stated |= _read_layer(_lab_environment(environment), warnings)
    stated |= _read_layer(_environment(environment, warnings), warnings)
    stated |= _read_layer(((key, text, "--set") for key, text in overrides.items()), warnings)
    implied = _read_layer(_implied_by_lab_brokers(environment, stated), warnings)
    return implied | stated


def environment_name(key: str) -> str:
    return ENVIRONMENT_PREFIX + key.upper().replace(".", "_").replace("-", "_")


def parse_lab_brokers(text: str) -> list[LabBroker]:
    return [_lab_broker(entry.strip(), text) for entry in text.split(",") if entry.strip()]


def _lab_broker(entry: str, text: str) -> LabBroker:
    broker_id, at, address = entry.partition("@")
    host, *ports = address.split(":")
    if not (at and host and broker_id.isdecimal() and len(ports) in {1, 2} and all(port.isdecimal() for port in ports)):
        raise SettingError(LAB_BROKERS, text, f"{entry!r} is not id@host:http-port or id@host:http-port:kafka-port")
    kafka_port = int(ports[1]) if len(ports) == 2 else LAB_KAFKA_PORT
    return LabBroker(int(broker_id), host, int(ports[0]), kafka_port)


def _read_layer(entries: Iterator[tuple[str, str, str]], warnings: list[str]) -> Layer:
    layer: Layer = {}
    for key, text, where in entries:
        setting = _known_setting(key)
        if setting is None:
            _refuse_missing_protection(key, where)
            warnings.append(f"{key} (from {where}): {_why_unknown(key)}")
            layer[key] = ConfiguredValue(text.strip(), text.strip(), where)
            continue
        configured = ConfiguredValue(text.strip(), setting.parse(text, where), where)
        if setting.no_effect_because:
            said = f"accepted, has no effect here, because {setting.no_effect_because}"
            warnings.append(f"{key}={configured.text} (from {where}): {said}")
        if base_name(key) != key:
            layer[key] = configured
            continue
        _refuse_disagreement(layer.get(setting.name), configured, key, setting)
        layer[setting.name] = configured
    return layer


def _refuse_missing_protection(key: str, where: str) -> None:
    reason = missing_protection(base_name(key))
    if reason is not None and not key.startswith(tuple(REMOVED_PREFIXES)):
        raise SettingError(key, None, reason, where)


def _refuse_disagreement(
    earlier: ConfiguredValue | None, configured: ConfiguredValue, key: str, setting: Setting
) -> None:
    if earlier is not None and earlier.value != configured.value and earlier.where == configured.where:
        other = "its alias" if key == setting.name else f"{setting.name}, of which it is an alias,"
        raise SettingError(key, configured.text, f"{other} says {earlier.text!r}; keep one of them", configured.where)


def _known_setting(key: str) -> Setting | None:
    return BROKER_SETTINGS.get(base_name(ALIASES.get(key, key)))


def _why_unknown(key: str) -> str:
    for prefix, advice in REMOVED_PREFIXES.items():
        if key.startswith(prefix):
            return advice
    if key in TOPIC_SETTINGS and TOPIC_SETTINGS[key].fallbacks:
        return f"a topic's setting; for all topics of a broker it is {TOPIC_SETTINGS[key].fallbacks[0].name}"
    if key.startswith(KAFKA_ONLY_PREFIXES):
        return "not supported, ignored"
    close = nearest(key, [*BROKER_SETTINGS, *ALIASES])
    return "unknown setting, ignored" + (f"; did you mean {close}?" if close else "")


def _environment(environment: Mapping[str, str], warnings: list[str]) -> Iterator[tuple[str, str, str]]:
    names = {environment_name(key): key for key in (*ALIASES, *BROKER_SETTINGS)}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in COMMAND_LINE_ONLY:
            continue
        if variable in names:
            yield names[variable], text, f"environment variable {variable}"
        else:
            close = nearest(variable, names)
            warnings.append(f"environment variable {variable}: unknown" + (f"; did you mean {close}?" if close else ""))


def _lab_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for variable, key in LAB_ENVIRONMENT.items():
        if variable in environment:
            yield key, environment[variable], f"environment variable {variable}"
    if LAB_BROKERS in environment:
        brokers = parse_lab_brokers(environment[LAB_BROKERS])
        voters = ",".join(f"{broker.id}@{broker.host}:{broker.kafka_port}" for broker in brokers)
        yield "controller.quorum.voters", voters, f"environment variable {LAB_BROKERS}"


def _implied_by_lab_brokers(environment: Mapping[str, str], stated: Layer) -> Iterator[tuple[str, str, str]]:
    if LAB_BROKERS not in environment or "node.id" not in stated:
        return
    own_id = stated["node.id"].value
    for broker in parse_lab_brokers(environment[LAB_BROKERS]):
        if broker.id == own_id:
            values = (
                f"PLAINTEXT://:{broker.kafka_port}",
                f"PLAINTEXT://{broker.host}:{broker.kafka_port}",
                f":{broker.http_port}",
            )
            for key, text in zip(IMPLIED_BY_LAB_BROKERS, values, strict=True):
                yield key, text, f"environment variable {LAB_BROKERS}"
