"""Settings as DescribeConfigs shows them: value, source, and the list of everything else that could have spoken."""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from sskafka.model.group_configs import GROUP_SETTINGS
from sskafka.model.setting import Setting, Type, Update, format_value
from sskafka.model.setting_sources import Layer
from sskafka.model.settings import Settings, spellings
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS


class ConfigSource(IntEnum):
    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    """None for secrets too."""
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: Type
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]
    """Strongest first; the first one is the value itself."""


def describe_topic(
    settings: Settings, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Every topic setting, or those named; names that do not exist are left out."""
    effective = settings.topic_config(overrides)
    return [_describe_topic_setting(settings, overrides, row, effective) for row in _rows(TOPIC_SETTINGS, names)]


def describe_group(
    settings: Settings, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Every setting that a group may have, or those named; whether the group exists does not matter."""
    return [_describe_group_setting(settings, overrides, row) for row in _rows(GROUP_SETTINGS, names)]


def describe_broker(settings: Settings, names: Collection[str] | None = None) -> list[ConfigEntry]:
    rows = (
        row for row in _rows(BROKER_SETTINGS, names) if not row.hidden_while_unset or settings[row.name] is not None
    )
    return [_describe_broker_setting(settings, row) for row in rows]


def describe_broker_defaults(settings: Settings, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The settings that were changed at run time for all brokers: the resource with the empty name."""
    changed = settings.dynamic.all_brokers
    rows = (row for row in _rows(BROKER_SETTINGS, names) if row.name in changed)
    return [_entry(row, _layer_synonyms(row.name, changed, ConfigSource.DYNAMIC_DEFAULT_BROKER)) for row in rows]


def _rows(table: Mapping[str, Setting], names: Collection[str] | None) -> Iterable[Setting]:
    return table.values() if names is None else (row for row in table.values() if row.name in names)


def _describe_topic_setting(
    settings: Settings, overrides: Mapping[str, str], setting: Setting, effective: Mapping[str, object]
) -> ConfigEntry:
    synonyms = []
    if setting.name in overrides:
        synonyms.append(ConfigSynonym(setting.name, overrides[setting.name], ConfigSource.TOPIC))
    for fallback in setting.fallbacks:
        synonyms += _broker_synonyms(settings, BROKER_SETTINGS[fallback.name])
    value = format_value(effective[setting.name])  # type: ignore[arg-type]
    return _entry(setting, synonyms)._replace(value=value, read_only=False)


def _describe_group_setting(settings: Settings, overrides: Mapping[str, str], setting: Setting) -> ConfigEntry:
    synonyms = []
    if setting.name in overrides:
        synonyms.append(ConfigSynonym(setting.name, overrides[setting.name].strip(), ConfigSource.GROUP))
    for fallback in setting.fallbacks:
        synonyms += _broker_synonyms(settings, BROKER_SETTINGS[fallback.name])
    if not setting.fallbacks:
        synonyms.append(ConfigSynonym(setting.name, format_value(setting.default), ConfigSource.DEFAULT))
    return _entry(setting, synonyms)


def _describe_broker_setting(settings: Settings, setting: Setting) -> ConfigEntry:
    entry = _entry(setting, _broker_synonyms(settings, setting))
    if setting.sensitive:
        return entry
    return entry._replace(value=format_value(settings[setting.name]))


def _entry(setting: Setting, synonyms: list[ConfigSynonym]) -> ConfigEntry:
    shown = tuple(synonym._replace(value=None) for synonym in synonyms) if setting.sensitive else tuple(synonyms)
    return ConfigEntry(
        name=setting.name,
        value=shown[0].value if shown else format_value(setting.default),
        source=shown[0].source if shown else ConfigSource.DEFAULT,
        read_only=setting.update is Update.READ_ONLY,
        sensitive=setting.sensitive,
        type=setting.type,
        documentation=setting.doc,
        synonyms=shown,
    )


def _broker_synonyms(settings: Settings, setting: Setting) -> list[ConfigSynonym]:
    sources = (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.STATIC_BROKER)
    names = [spelling.name for spelling in spellings(setting)]
    synonyms = []
    for layer, source in zip(settings.layers(), sources, strict=True):
        for name in names:
            synonyms += _layer_synonyms(name, layer, source)
    return synonyms + [_default_synonym(name) for name in names if BROKER_SETTINGS[name].default is not None]


def _layer_synonyms(name: str, layer: Layer, source: ConfigSource) -> list[ConfigSynonym]:
    return [ConfigSynonym(name, layer[name].text, source)] if name in layer else []


def _default_synonym(name: str) -> ConfigSynonym:
    return ConfigSynonym(name, format_value(BROKER_SETTINGS[name].default), ConfigSource.DEFAULT)
