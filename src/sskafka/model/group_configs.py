"""Settings of single groups: checked when they are changed, and limited by the brokers' bounds when they are used.

    the group's own value, limited to the brokers' bounds > the broker's setting

The bounds can be changed after a group's value was accepted, so a stored value may lie outside of them.
"""

from collections.abc import Mapping
from types import MappingProxyType

from sskafka.model.setting import Setting, SettingError, Value
from sskafka.model.settings import Settings
from sskafka.model.settings_table.group_configs import BOUNDS, GROUP_CONFIGS

GROUP_SETTINGS = MappingProxyType({row.name: row for row in GROUP_CONFIGS})

_KINDS = ("consumer", "share", "streams")


class GroupConfigError(ValueError):
    """The settings of a group are invalid."""


def group_setting(name: str) -> Setting:
    if name not in GROUP_SETTINGS:
        raise GroupConfigError(f"Unknown group config name: {name}")
    return GROUP_SETTINGS[name]


def validate_group_configs(configs: Mapping[str, str], settings: Settings) -> None:
    """Raise GroupConfigError or SettingError for settings of a group that a broker with `settings` refuses."""
    values = {name: group_setting(name).parse(text) for name, text in configs.items()}
    for name, value in values.items():
        _check_bounds(name, value, settings)
    for kind in _KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        is_set = session in values or heartbeat in values
        if is_set and _or_default(session, values, settings) <= _or_default(heartbeat, values, settings):
            raise GroupConfigError(f"{session} must be greater than {heartbeat}")


def _check_bounds(name: str, value: Value, settings: Settings) -> None:
    bounds = BOUNDS.get(name)
    if bounds is None:
        return
    assert isinstance(value, int)
    if bounds.least is not None and value < settings.integer(bounds.least):
        raise GroupConfigError(f"{name} must be greater than or equal to {bounds.least}")
    if value > settings.integer(bounds.most):
        raise GroupConfigError(f"{name} must be less than or equal to {bounds.most}")


def _or_default(name: str, values: Mapping[str, Value], settings: Settings) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else settings.integer(GROUP_SETTINGS[name].fallbacks[0].name)


def effective_int(name: str, overrides: Mapping[str, str], settings: Settings) -> int:
    """Return the effective value of an integer setting of a group with these `overrides`."""
    row = GROUP_SETTINGS[name]
    default = settings.integer(row.fallbacks[0].name)
    text = overrides.get(name)
    if text is None:
        return default
    try:
        value = row.parse(text)
    except SettingError:
        return default  # written by software that allows more
    assert isinstance(value, int)
    bounds = BOUNDS[name]
    least = value if bounds.least is None else max(value, settings.integer(bounds.least))
    return min(least, settings.integer(bounds.most))
