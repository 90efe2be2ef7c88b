"""Client metrics subscriptions (KIP-714): which metrics clients are asked to push, how often, and which clients.

A subscription is a config resource of its own. Brokers store and describe subscriptions. Brokers request metrics from
clients only if a metrics reporter is configured, and this broker supports none.
"""

import re
from collections.abc import Collection, Mapping

from sskafka.model.config_description import ConfigEntry, ConfigSource, ConfigSynonym
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.setting import Importance, Setting, SettingError, Type, Update, format_value, split_list

INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
CLIENT_PROPERTIES = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

_ROWS = (
    Setting("interval.ms", Type.INT, 300_000, None, Update.CLUSTER_WIDE, Importance.MEDIUM,
            "How often clients push their metrics."),
    Setting("match", Type.LIST, (), None, Update.CLUSTER_WIDE, Importance.MEDIUM,
            "Clients that are asked, as property=pattern pairs that must all match; empty asks every client."),
    Setting("metrics", Type.LIST, (), None, Update.CLUSTER_WIDE, Importance.MEDIUM,
            "Prefixes of the names of the metrics that are asked for; * asks for all, empty for none."),
)  # fmt: skip
CLIENT_METRICS_SETTINGS: Mapping[str, Setting] = {row.name: row for row in _ROWS}


def validate_client_metrics(configs: Mapping[str, str]) -> None:
    """Raise KafkaError, with Apache Kafka's code and message, unless a subscription may have these settings."""
    for name in configs:
        if name not in CLIENT_METRICS_SETTINGS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    try:
        values = {name: CLIENT_METRICS_SETTINGS[name].parse(text) for name, text in configs.items()}
    except SettingError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.kafka_text) from error
    interval_ms = values.get("interval.ms", INTERVAL_MS_MIN)
    assert isinstance(interval_ms, int)
    if not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        text = f"interval must be between {INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid value {interval_ms} for interval.ms, {text}")
    for pattern in split_list(configs.get("match", "")):
        if not _is_client_pattern(pattern):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def describe_client_metrics(configs: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return the settings of a subscription (all, or the named ones): the defaults if it does not exist."""
    rows = (row for row in _ROWS if names is None or row.name in names)
    return [_described(row, configs.get(row.name)) for row in rows]


def _described(row: Setting, text: str | None) -> ConfigEntry:
    source = ConfigSource.DEFAULT_CONFIG if text is None else ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
    synonyms = () if text is None else (ConfigSynonym(row.name, text, source),)
    value = format_value(row.default) if text is None else text
    return ConfigEntry(row.name, value, source, False, False, row.type, row.doc, synonyms)


def _is_client_pattern(text: str) -> bool:
    parts = text.split("=")
    if len(parts) != 2 or parts[0].strip() not in CLIENT_PROPERTIES:
        return False
    try:
        re.compile(parts[1].strip())
    except re.error:
        return False
    return True
