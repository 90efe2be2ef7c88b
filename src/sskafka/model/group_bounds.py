"""Apache Kafka's rules for a broker's settings of consumer groups, which are checked at startup and for changes."""

from typing import TYPE_CHECKING, Final

from sskafka.model.setting import SettingError
from sskafka.model.settings_table.group_configs import BOUNDS

if TYPE_CHECKING:
    from sskafka.model.settings import Settings

SESSION: Final = "group.consumer.session.timeout.ms"
HEARTBEAT: Final = "group.consumer.heartbeat.interval.ms"
PROTOCOLS: Final = "group.coordinator.rebalance.protocols"


def check_group_bounds(settings: "Settings") -> None:
    """Raise SettingError unless each setting lies between its `min` and `max` and sessions outlast heartbeats."""
    for name, (least, most) in BOUNDS.items():
        if name.startswith("consumer.") and least is not None:
            _require(
                settings.integer(most) >= settings.integer(least), most, settings, f"greater than or equal to {least}"
            )
            default = f"group.{name}"
            _require(
                settings.integer(default) >= settings.integer(least),
                default,
                settings,
                f"greater than or equal to {least}",
            )
            _require(
                settings.integer(default) <= settings.integer(most), default, settings, f"less than or equal to {most}"
            )
    _require(settings[HEARTBEAT] < settings[SESSION], HEARTBEAT, settings, f"less than {SESSION}")


def check_group_protocols(settings: "Settings") -> None:
    protocols = settings[PROTOCOLS]
    if "classic" not in protocols:
        raise SettingError(PROTOCOLS, ",".join(protocols), "the classic protocol cannot be disabled")
    if "share" in protocols:
        raise SettingError(PROTOCOLS, ",".join(protocols), "share groups are not supported; remove share from the list")


def _require(is_met: bool, name: str, settings: "Settings", rule: str) -> None:
    if not is_met:
        text = f"{name} must be {rule}"
        raise SettingError(name, str(settings[name]), f"must be {rule}", kafka_text=text)
