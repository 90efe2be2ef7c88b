"""The rule of Apache Kafka for cordoned.log.dirs, which is checked at startup and for changes."""

from typing import TYPE_CHECKING, Final

from sskafka.model.setting import SettingError

if TYPE_CHECKING:
    from sskafka.model.settings import Settings

CORDONED: Final = "cordoned.log.dirs"
ALL_DIRECTORIES = "*"


def check_cordoned_directories(settings: "Settings") -> None:
    """Raise SettingError unless a broker cordons only directories of its own; * must stand alone."""
    cordoned = settings[CORDONED]
    if not cordoned or "broker" not in settings["process.roles"]:
        return
    if ALL_DIRECTORIES in cordoned:
        if len(cordoned) > 1:
            raise _refusal(cordoned, f"{ALL_DIRECTORIES} must be the only entry")
        return
    unknown = [path for path in cordoned if path not in settings["log.dirs"]]
    if unknown:
        raise _refusal(cordoned, f"log.dirs does not have {', '.join(unknown)}")


def _refusal(cordoned: tuple[str, ...], problem: str) -> SettingError:
    return SettingError(CORDONED, ",".join(cordoned), problem)
