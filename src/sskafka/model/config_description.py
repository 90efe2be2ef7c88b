"""Settings as DescribeConfigs shows them: value, source, and synonyms, the values of all other sources."""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import NamedTuple

from sskafka.model.dynamic_configs import known_setting
from sskafka.model.group_configs import GROUP_SETTINGS
from sskafka.model.setting import Setting, Type, Update, format_value
from sskafka.model.setting_sources import Layer
from sskafka.model.settings import Settings, spellings
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS


class ConfigSource(IntEnum):
    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


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
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]
    """Strongest first; the first one is the value itself."""


def describe_topic(
    settings: Settings, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Return every topic setting, or the named ones. Names that do not exist are left out."""
    effective = settings.topic_config(overrides)
    rows = [row for row in _rows(TOPIC_SETTINGS, names) if not row.hidden_while_unset or row.name in overrides]
    return [_describe_topic_setting(settings, overrides, row, effective) for row in rows]


def describe_group(
    settings: Settings, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Return every setting of a group, or the named ones. The group need not exist."""
    return [_describe_group_setting(settings, overrides, row) for row in _rows(GROUP_SETTINGS, names)]


def describe_broker(settings: Settings, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return every broker setting, or the named ones, including unknown names in the file or the metadata."""
    entries = [
        _describe_broker_setting(settings, row) for row in _rows(BROKER_SETTINGS, names) if _is_shown(settings, row)
    ]
    unknown = {name for layer in settings.layers() for name in layer if name not in BROKER_SETTINGS}
    entries += [_describe_other(settings, name) for name in sorted(unknown) if names is None or name in names]
    return entries + ([_broker_id(settings)] if names is None or "broker.id" in names else [])


def describe_broker_defaults(settings: Settings, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return the dynamic settings of all brokers: the resource with the empty name."""
    changed = settings.dynamic.all_brokers
    wanted = [name for name in changed if names is None or name in names]
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [_entry(known_setting(name), name, _layer_synonyms(name, changed, source)) for name in wanted]


def _rows(table: Mapping[str, Setting], names: Collection[str] | None) -> Iterable[Setting]:
    return (row for row in table.values() if names is None or row.name in names)


def _describe_topic_setting(
    settings: Settings, overrides: Mapping[str, str], setting: Setting, effective: Mapping[str, object]
) -> ConfigEntry:
    value = format_value(effective[setting.name])  # type: ignore[arg-type]
    synonyms = []
    if setting.name in overrides:
        synonyms.append(ConfigSynonym(setting.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
    for fallback in setting.fallbacks:
        synonyms += _broker_synonyms(settings, BROKER_SETTINGS[fallback.name])
    return _entry(setting, setting.name, synonyms)._replace(value=value, read_only=False)


def _describe_group_setting(settings: Settings, overrides: Mapping[str, str], setting: Setting) -> ConfigEntry:
    synonyms = []
    if setting.name in overrides:
        synonyms.append(ConfigSynonym(setting.name, overrides[setting.name].strip(), ConfigSource.DYNAMIC_GROUP_CONFIG))
    for fallback in setting.fallbacks:
        synonyms += _broker_synonyms(settings, BROKER_SETTINGS[fallback.name])
    if not setting.fallbacks:
        synonyms.append(ConfigSynonym(setting.name, format_value(setting.default), ConfigSource.DEFAULT_CONFIG))
    return _entry(setting, setting.name, synonyms)


def _describe_broker_setting(settings: Settings, setting: Setting) -> ConfigEntry:
    entry = _entry(setting, setting.name, _broker_synonyms(settings, setting))
    if setting.sensitive:
        return entry
    if setting.fallbacks and not any(setting.name in layer for layer in settings.layers()):
        return entry._replace(value=format_value(setting.default))
    return entry._replace(value=format_value(settings[setting.name]))


def _describe_other(settings: Settings, name: str) -> ConfigEntry:
    """Describe a name with a listener's prefix, or an unknown name."""
    setting = known_setting(name)
    synonyms = _layered_synonyms(settings, [name, setting.name] if setting else [name])
    if setting is not None and setting.default is not None:
        synonyms.append(_default_synonym(setting.name))
    return _entry(setting, name, synonyms)._replace(read_only=True, documentation=None)


def _is_shown(settings: Settings, setting: Setting) -> bool:
    return not setting.hidden_while_unset or any(setting.name in layer for layer in settings.layers())


def _broker_id(settings: Settings) -> ConfigEntry:
    """The older name of node.id."""
    entry = _describe_broker_setting(settings, BROKER_SETTINGS["node.id"])
    stated = tuple(synonym for synonym in entry.synonyms if synonym.source is not ConfigSource.DEFAULT_CONFIG)
    synonyms = (*(synonym._replace(name="broker.id") for synonym in stated), _BROKER_ID_DEFAULT)
    return entry._replace(name="broker.id", synonyms=synonyms)


def _entry(setting: Setting | None, name: str, synonyms: list[ConfigSynonym]) -> ConfigEntry:
    """Hide the values of unknown settings, which may be secrets."""
    sensitive = setting is None or setting.sensitive
    shown = tuple(synonym._replace(value=None) for synonym in synonyms) if sensitive else tuple(synonyms)
    default = format_value(setting.default) if setting else None
    return ConfigEntry(
        name=name,
        value=shown[0].value if shown else default,
        source=shown[0].source if shown else ConfigSource.DEFAULT_CONFIG,
        read_only=setting is None or setting.update is Update.READ_ONLY,
        sensitive=sensitive,
        type=setting.type if setting else Type.UNKNOWN,
        documentation=setting.doc if setting else None,
        synonyms=shown,
    )


def _broker_synonyms(settings: Settings, setting: Setting) -> list[ConfigSynonym]:
    """Return the value of each source, then those of coarser units. The setting itself comes first."""
    names = [spelling.name for spelling in spellings(setting) if spelling.is_synonym]
    synonyms = _layered_synonyms(settings, names)
    if setting.is_required_by_kafka and synonyms:
        return synonyms
    synonyms += [_default_synonym(name) for name in names if BROKER_SETTINGS[name].default is not None]
    return list(dropwhile(lambda synonym: synonym.name != setting.name, synonyms))


def _layered_synonyms(settings: Settings, names: list[str]) -> list[ConfigSynonym]:
    sources = (
        ConfigSource.DYNAMIC_BROKER_CONFIG,
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
        ConfigSource.STATIC_BROKER_CONFIG,
    )
    synonyms = []
    for layer, source in zip(settings.layers(), sources, strict=True):
        for name in names:
            synonyms += _layer_synonyms(name, layer, source)
    return synonyms


def _layer_synonyms(name: str, layer: Layer, source: ConfigSource) -> list[ConfigSynonym]:
    return [ConfigSynonym(name, layer[name].text, source)] if name in layer else []


def _default_synonym(name: str) -> ConfigSynonym:
    return ConfigSynonym(name, format_value(BROKER_SETTINGS[name].default), ConfigSource.DEFAULT_CONFIG)


_BROKER_ID_DEFAULT = ConfigSynonym("broker.id", "-1", ConfigSource.DEFAULT_CONFIG)
