"""Apache Kafka's rules for changes of settings while a broker runs, with its error messages and in its order.

Unknown names are stored, because they may belong to a newer broker. Unknown names that promise protection are refused.
`listener.name.NAME.SETTING` sets SETTING for one listener, `listener.name.NAME.MECHANISM.SETTING` for one of its SASL
mechanisms.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sskafka.model.cordoned_directories import CORDONED, check_cordoned_directories
from sskafka.model.group_bounds import check_group_bounds
from sskafka.model.listener_changes import check_listener_changes
from sskafka.model.security.listener_settings import JAAS, check_security, parsed_jaas
from sskafka.model.setting import Setting, SettingError, Update
from sskafka.model.settings_table import BROKER_SETTINGS, missing_protection

OF_ONE_LISTENER = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""Settings that may be set for all brokers with the prefix `listener.name.NAME.`."""
ONLY_OF_ONE_LISTENER = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
THREAD_COUNTS = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)
CLEANER_BUFFER_BYTES_MIN = 1024 * 1024

_LISTENER_SETTING = re.compile(
    r"listener\.name\.([^.]+)\.(?:(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.(?=sasl\.|connections\.))?(.+)"
)


def base_name(name: str) -> str:
    """Return the name without a listener's prefix."""
    match = _LISTENER_SETTING.fullmatch(name)
    return match[2] if match else name


def known_setting(name: str) -> Setting | None:
    """Return the broker setting with this name, which may have a listener's prefix."""
    return BROKER_SETTINGS.get(base_name(name))


def validate_dynamic_configs(configs: Mapping[str, str], *, all_brokers: bool) -> None:
    """Raise SettingError unless `configs` may be set at run time, for one broker or for all."""
    read_only = [name for name in configs if name in BROKER_SETTINGS and _is_read_only(name)]
    _refuse(read_only, "Cannot update these configs dynamically")
    _refuse(
        [name for name in configs if name in ONLY_OF_ONE_LISTENER],
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    for name, text in configs.items():
        setting = known_setting(name)
        if setting is not None:
            setting.parse(text)
            if setting.name == JAAS:
                parsed_jaas(name, text)
        elif (reason := missing_protection(base_name(name))) is not None:
            raise SettingError(name, None, reason)
    if all_brokers:
        _refuse(
            [name for name in configs if _is_per_broker(name)],
            "Cannot update these configs at default cluster level, broker id must be specified",
        )


def validate_against_current(configs: Mapping[str, str], current: Any, wanted: Any) -> None:
    """Raise SettingError if a running broker cannot change its settings from `current` to `wanted`."""
    check_listener_changes(current, wanted)
    for name in THREAD_COUNTS:
        if name in configs:
            _check_thread_count(name, current[name], wanted[name])
    _check_cleaner(configs, current, wanted)
    check_group_bounds(wanted)
    check_security(wanted)
    if CORDONED in configs:
        check_cordoned_directories(wanted)
    if wanted["max.connections.per.ip"] == 0 and not wanted["max.connections.per.ip.overrides"]:
        text = "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
        raise _refusal("max.connections.per.ip", configs, text)
    if "max.connection.creation.rate" in configs and wanted["max.connection.creation.rate"] <= 0:
        text = f"Invalid max.connection.creation.rate {wanted['max.connection.creation.rate']}"
        raise _refusal("max.connection.creation.rate", configs, text)


def _check_thread_count(name: str, current: int, wanted: int) -> None:
    problem = ""
    if wanted > 2 * current:
        problem = f"value should not be greater than double the current value {current}"
    elif wanted < current / 2:
        problem = f"value should be at least half the current value {current}"
    if problem:
        text = f"Dynamic thread count update validation failed for {name}={wanted}, {problem}"
        raise SettingError(name, str(wanted), problem, kafka_text=text)


def _check_cleaner(configs: Mapping[str, str], current: Any, wanted: Any) -> None:
    if not any(name.startswith("log.cleaner.") for name in configs):
        return
    count, was = wanted["log.cleaner.threads"], current["log.cleaner.threads"]
    problem = ""
    if count < 1:
        problem = "Log cleaner threads should be at least 1"
    elif count > 2 * was:
        problem = f"Log cleaner threads cannot be increased to more than double the current value {was}"
    elif count < was / 2:
        problem = f"Log cleaner threads cannot be reduced to less than half the current value {was}"
    if problem:
        raise _refusal("log.cleaner.threads", configs, problem)
    if wanted["log.cleaner.dedupe.buffer.size"] // count < CLEANER_BUFFER_BYTES_MIN:
        text = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
        raise _refusal("log.cleaner.dedupe.buffer.size", configs, text)


def _is_read_only(name: str) -> bool:
    return BROKER_SETTINGS[name].update is Update.READ_ONLY


def _is_per_broker(name: str) -> bool:
    base = base_name(name)
    if base != name:
        return base not in OF_ONE_LISTENER
    return name in BROKER_SETTINGS and BROKER_SETTINGS[name].update is Update.PER_BROKER


def _refuse(names: Iterable[str], problem: str) -> None:
    names = list(names)
    if names:
        raise SettingError(names[0], None, problem, kafka_text=f"{problem}: [{', '.join(names)}]")


def _refusal(name: str, configs: Mapping[str, str], text: str) -> SettingError:
    return SettingError(name, configs.get(name), text, kafka_text=text)
