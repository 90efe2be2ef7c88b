"""Options as the user gave them: text, under names whose case does not count.

What cannot be read is an OptionError that names the option. A name that is nearly one of those that exist is refused:
Spark would ignore it without a word. Other names that nobody here knows are told and passed over, as Spark does.
"""

import logging
import re
from collections.abc import Mapping
from difflib import get_close_matches

from sskafka.client.config import unknown_properties
from sskafka.pipelines.connector.errors import OptionError

logger = logging.getLogger(__name__)

PROPERTY_PREFIX = "kafka."

_NEARLY = 0.85
_NEARLY_A_PROPERTY = 0.945  # below that lie names of Kafka's own, such as socket.connection.setup.timeout.max.ms
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")
_MS_IN = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DECIDED_HERE = {
    "key.deserializer": "keys are always read as bytes",
    "value.deserializer": "values are always read as bytes",
    "key.serializer": "keys are always written as bytes or text",
    "value.serializer": "values are always written as bytes or text",
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "progress is committed when Spark has committed a batch",
    "interceptor.classes": "Java classes cannot be called here",
    "transactional.id": "use transactionalIdPrefix",
}
_SECURITY = ("security.", "sasl.", "ssl.")
_PLAINTEXT = ("security.protocol", "PLAINTEXT")
_OPTIONS_TOO = ("bootstrap.servers", "group.id")


class GivenOptions:
    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        self._refuse_misspelled(known)

    def _refuse_misspelled(self, known: tuple[str, ...]) -> None:
        by_lower = {name.lower(): name for name in known}
        for name in self._values:
            if name in by_lower or name.startswith(PROPERTY_PREFIX):
                continue
            near = get_close_matches(name, by_lower, n=1, cutoff=_NEARLY)
            if near:
                raise OptionError(name, f"there is no such option; did you mean {by_lower[near[0]]}?")

    def tell_unknown(self, known: tuple[str, ...]) -> None:
        """Names that are not nearly one of the known, and properties that no part of our client has."""
        lower = {name.lower() for name in known}
        strange = [name for name in self._values if name not in lower and not name.startswith(PROPERTY_PREFIX)]
        strange += [f"{PROPERTY_PREFIX}{name}" for name in unknown_properties(self._properties())]
        if strange:
            logger.warning("options without a meaning here are passed over: %s", ", ".join(sorted(strange)))

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
        """The first choice unless another one is given."""
        text = self.text(name, choices[0]).lower()
        if text not in choices:
            raise OptionError(name, f"{text!r} is neither {' nor '.join(choices)}")
        return text

    def duration_ms(self, name: str, default: str) -> int:
        """A time as Spark writes it: 500ms, 30s, 15m, 2h; milliseconds without a unit."""
        text = self.text(name, default).lower()
        found = _DURATION.fullmatch(text)
        if found is None or found[2] not in _MS_IN:
            raise OptionError(name, f"{text!r} is not a time such as 500ms, 30s or 15m")
        return int(found[1]) * _MS_IN[found[2]]

    def properties(self) -> dict[str, str]:
        """Kafka's client properties, without their prefix; those that cannot be obeyed are refused."""
        properties = self._properties()
        for name, value in properties.items():
            if name in _DECIDED_HERE:
                raise OptionError(f"{PROPERTY_PREFIX}{name}", f"cannot be set: {_DECIDED_HERE[name]}")
            if name.startswith(_SECURITY) and (name, value.strip().upper()) != _PLAINTEXT:
                raise OptionError(
                    f"{PROPERTY_PREFIX}{name}", "secured listeners are not supported yet; use a plaintext listener"
                )
        for name, near in unknown_properties(properties, cutoff=_NEARLY_A_PROPERTY).items():
            if near is not None:
                raise OptionError(f"{PROPERTY_PREFIX}{name}", f"there is no such property; did you mean {near}?")
        return properties

    def _properties(self) -> dict[str, str]:
        return {
            name.removeprefix(PROPERTY_PREFIX): value
            for name, value in self._values.items()
            if name.startswith(PROPERTY_PREFIX) and not name.endswith(_OPTIONS_TOO)
        }
