"""Reads options of Spark, which are text with case-insensitive names.

An OptionError names an option that cannot be used. A misspelled name is refused, because Spark would ignore it
silently. Other unknown names are logged and ignored, as in Spark.
"""

import logging
import re
from collections.abc import Mapping
from difflib import get_close_matches

from sskafka.client.config import group_properties, unknown_properties
from sskafka.pipelines.connector.errors import OptionError

logger = logging.getLogger(__name__)

PROPERTY_PREFIX = "kafka."

_OPTION_SIMILARITY_MIN = 0.85
_PROPERTY_SIMILARITY_MIN = (
    0.945  # below this similarity are properties of Kafka such as socket.connection.setup.timeout.max.ms
)
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")
_MS_IN = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_FIXED_PROPERTIES = {
    "key.deserializer": "keys are always read as bytes",
    "value.deserializer": "values are always read as bytes",
    "key.serializer": "keys are always written as bytes or text",
    "value.serializer": "values are always written as bytes or text",
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "progress is committed when Spark has committed a batch",
    "interceptor.classes": "Java classes are not supported",
    "transactional.id": "use transactionalIdPrefix",
}
_ALSO_OPTIONS = ("bootstrap.servers", "group.id")


class OptionReader:
    """The options of one source or sink; names that are similar to a known one are refused."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        self._refuse_misspelled(known)

    def _refuse_misspelled(self, known: tuple[str, ...]) -> None:
        by_lower = {name.lower(): name for name in known}
        for name in self._values:
            if name in by_lower or name.startswith(PROPERTY_PREFIX):
                continue
            near = get_close_matches(name, by_lower, n=1, cutoff=_OPTION_SIMILARITY_MIN)
            if near:
                raise OptionError(name, f"there is no such option; did you mean {by_lower[near[0]]}?")

    def warn_of_unknown(self, known: tuple[str, ...]) -> None:
        """Log names that are not similar to a known one, and properties that the client does not have."""
        lower = {name.lower() for name in known}
        unknown = [name for name in self._values if name not in lower and not name.startswith(PROPERTY_PREFIX)]
        without_use = {*unknown_properties(self._properties()), *(group_properties() & self._properties().keys())}
        unknown += [f"{PROPERTY_PREFIX}{name}" for name in without_use]
        if unknown:
            logger.warning("unknown options are ignored: %s", ", ".join(sorted(unknown)))

    def has_any(self, *names: str) -> bool:
        return any(name.lower() in self._values for name in names)

    def text(self, name: str, default: str) -> str:
        return self._values.get(name.lower(), default).strip()

    def required(self, name: str) -> str:
        if not self.text(name, ""):
            raise OptionError(name, "is missing, for example localhost:9092")
        return self.text(name, "")

    def number(self, name: str, default: int | None, *, at_least: int) -> int | None:
        if not self.has_any(name):
            return default
        text = self.text(name, "")
        if not text.isdigit() or int(text) < at_least:
            raise OptionError(name, f"{text!r} is not a whole number of at least {at_least}")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name, str(default)).lower()
        if text not in {"true", "false"}:
            raise OptionError(name, f"{text!r} is neither true nor false")
        return text == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return one of the choices; the first one is the default."""
        text = self.text(name, choices[0]).lower()
        if text not in choices:
            raise OptionError(name, f"{text!r} is neither {' nor '.join(choices)}")
        return text

    def duration_ms(self, name: str, default: str) -> int:
        """Return a time in Spark's notation (500ms, 30s, 15m, 2h; default unit ms) in milliseconds."""
        text = self.text(name, default).lower()
        found = _DURATION.fullmatch(text)
        if found is None or found[2] not in _MS_IN:
            raise OptionError(name, f"{text!r} is not a time such as 500ms, 30s or 15m")
        return int(found[1]) * _MS_IN[found[2]]

    def properties(self) -> dict[str, str]:
        """Return the properties of Kafka's clients without their prefix; raises for those that are not supported."""
        properties = self._properties()
        for name in properties:
            if name in _FIXED_PROPERTIES:
                raise OptionError(f"{PROPERTY_PREFIX}{name}", f"cannot be set: {_FIXED_PROPERTIES[name]}")
        for name, near in unknown_properties(properties, cutoff=_PROPERTY_SIMILARITY_MIN).items():
            if near is not None:
                raise OptionError(f"{PROPERTY_PREFIX}{name}", f"there is no such property; did you mean {near}?")
        return properties

    def _properties(self) -> dict[str, str]:
        return {
            name.removeprefix(PROPERTY_PREFIX): value
            for name, value in self._values.items()
            if name.startswith(PROPERTY_PREFIX) and not name.endswith(_ALSO_OPTIONS)
        }
