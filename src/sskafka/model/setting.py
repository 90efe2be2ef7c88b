"""One setting: its type, default, allowed values, and how text becomes a value and back.

A `Setting` is a row of the table in `settings_table`. It does not know the sources of values; `settings` does.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from sskafka.model.values import value

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1


class SettingError(ValueError):
    """A key or value is invalid. The message names it, the allowed values, and its source."""

    def __init__(
        self, key: str, value: str | None, problem: str, where: str = "", *, kafka_text: str | None = None
    ) -> None:
        """`kafka_text` is Apache Kafka's message for the problem, which tools may look for."""
        origin = f" (from {where})" if where else ""
        shown = "" if value is None else f"={value!r}"
        super().__init__(f"{key}{shown}{origin}: {problem}")
        self.key = key
        self.value = value
        self.problem = problem
        self.where = where
        self.kafka_text = kafka_text or str(self)


class Type(IntEnum):
    """The types of DescribeConfigs, with its codes."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(Enum):
    """Whether a setting can be changed while a broker runs, and for which brokers."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Use(Enum):
    """How a broker treats a setting."""

    USED = "used"
    REFUSED = "refused unless it has its default"
    NO_EFFECT = "accepted without effect"


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Constraint(Protocol):
    def allows(self, value: Value) -> bool: ...

    def kafka_refusal(self, value: Value) -> str:
        """Return Apache Kafka's message for a value that is not allowed."""
        ...


@value
class AtLeast:
    minimum: float

    def allows(self, value: Value) -> bool:
        return isinstance(value, int | float) and value >= self.minimum

    def kafka_refusal(self, value: Value) -> str:
        return f"Value must be at least {self.minimum}"

    def __str__(self) -> str:
        return f"at least {self.minimum}"


@value
class Between:
    minimum: float
    maximum: float

    def allows(self, value: Value) -> bool:
        return isinstance(value, int | float) and self.minimum <= value <= self.maximum

    def kafka_refusal(self, value: Value) -> str:
        if isinstance(value, int | float) and value < self.minimum:
            return f"Value must be at least {self.minimum}"
        return f"Value must be no more than {self.maximum}"

    def __str__(self) -> str:
        return f"{self.minimum} to {self.maximum}"


@value
class BetweenOr:
    """A range and one value outside it that means "the default"."""

    minimum: int
    maximum: int
    other: int

    def allows(self, value: Value) -> bool:
        return isinstance(value, int) and (value == self.other or self.minimum <= value <= self.maximum)

    def kafka_refusal(self, value: Value) -> str:
        return f"Value must be between {self.minimum} and {self.maximum} or equal to {self.other}"

    def __str__(self) -> str:
        return f"{self.minimum} to {self.maximum}, or {self.other}"


class OneOf(NamedTuple):
    choices: tuple[str, ...]

    def allows(self, value: Value) -> bool:
        return value in self.choices

    def kafka_refusal(self, value: Value) -> str:
        return f"String must be one of: {', '.join(self.choices)}"

    def __str__(self) -> str:
        return "one of " + ", ".join(self.choices)


class EachOf(NamedTuple):
    choices: tuple[str, ...]

    def allows(self, value: Value) -> bool:
        return isinstance(value, tuple) and all(item in self.choices for item in value)

    def kafka_refusal(self, value: Value) -> str:
        return f"String must be one of: {', '.join(self.choices)}"

    def __str__(self) -> str:
        return "a list of " + ", ".join(self.choices)


class Fallback(NamedTuple):
    """Another setting whose value is used if this one is not set. Its unit is `factor` units of this one."""

    name: str
    factor: int = 1
    is_synonym: bool = True
    """Whether DescribeConfigs lists it with the setting."""


@value
class Setting:
    name: str
    type: Type
    default: Value
    allowed: Constraint | None
    update: Update
    importance: Importance
    doc: str
    refused_because: str = ""
    """For missing features: why values other than the default are refused, and the alternative."""
    no_effect_because: str = ""
    """For settings that tune missing features: all values are accepted and reported at startup."""
    fallbacks: tuple[Fallback, ...] = ()
    """For a topic setting: the broker setting. For a broker setting: the same setting in coarser units."""
    own: bool = False
    """True for settings that Apache Kafka does not have."""
    kafka_default: Value = None
    """Kafka's default, if ours differs."""
    is_required_by_kafka: bool = False
    """True if Apache Kafka has no default: ours is listed only while it is in effect."""
    hidden_while_unset: bool = False
    """True for settings that DescribeConfigs shows only if they are set."""

    @property
    def use(self) -> Use:
        if self.refused_because:
            return Use.REFUSED
        return Use.NO_EFFECT if self.no_effect_because else Use.USED

    @property
    def sensitive(self) -> bool:
        return self.type is Type.PASSWORD

    def parse(self, text: str, where: str = "") -> Value:
        """Return the typed value of `text`; raise SettingError if it is not allowed."""
        stripped = text.strip()
        if not stripped and self.default is None and self.type is not Type.STRING:
            return None
        try:
            value = _PARSERS[self.type](stripped)
        except ValueError:
            raise self._refused(text, where, _KAFKA_TYPE_TEXT.get(self.type, "")) from None
        if self.allowed is not None and not self.allowed.allows(value):
            raise self._refused(text, where, self.allowed.kafka_refusal(value))
        if isinstance(self.allowed, EachOf) and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        if self.refused_because and value not in (self.default, self.kafka_default):
            raise SettingError(self.name, self._shown(text), self.refused_because, where)
        return value

    def _refused(self, text: str, where: str, kafka_reason: str = "") -> SettingError:
        shown = self._shown(text)
        listed = f"[{', '.join(split_list(shown))}]" if self.type is Type.LIST else shown
        kafka_text = f"Invalid value {listed} for configuration {self.name}: {kafka_reason}"
        return SettingError(self.name, shown, f"allowed is {self.allowed_text()}", where, kafka_text=kafka_text)

    def _shown(self, text: str) -> str:
        return "***" if self.sensitive else text

    def allowed_text(self) -> str:
        kind = _TYPE_TEXT[self.type]
        if self.allowed is None:
            return kind
        if isinstance(self.allowed, OneOf | EachOf):
            return str(self.allowed)
        return f"{kind}, {self.allowed}"


def nearest(name: str, known: Mapping[str, object] | Sequence[str], *, cutoff: float = 0.6) -> str | None:
    """Return the most similar known name; None if no similarity reaches `cutoff`."""
    from difflib import get_close_matches  # noqa: PLC0415  (slow to import, needed only to complain)

    matches = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def format_value(value: Value) -> str | None:
    """Return the text that DescribeConfigs shows, in Kafka's spelling."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return repr(value).replace("e+", "E")
    return str(value)


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        raise ValueError(text)
    return lowered == "true"


def _whole_number(bits: int, text: str) -> int:
    if "_" in text:  # Python's own notation, which no other reader of server.properties knows
        raise ValueError(text)
    value = int(text)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(text)
    return value


def split_list(text: str) -> tuple[str, ...]:
    return tuple(item for item in (part.strip() for part in text.split(",")) if item)


_PARSERS: dict[Type, Callable[[str], Value]] = {
    Type.BOOLEAN: _boolean,
    Type.STRING: str,
    Type.INT: partial(_whole_number, 32),
    Type.SHORT: partial(_whole_number, 16),
    Type.LONG: partial(_whole_number, 64),
    Type.DOUBLE: float,
    Type.LIST: split_list,
    Type.CLASS: str,
    Type.PASSWORD: str,
}

_KAFKA_TYPE_TEXT = {
    Type.BOOLEAN: "Expected value to be either true or false",
    Type.INT: "Not a number of type INT",
    Type.SHORT: "Not a number of type SHORT",
    Type.LONG: "Not a number of type LONG",
    Type.DOUBLE: "Not a number of type DOUBLE",
}

_TYPE_TEXT = {
    Type.BOOLEAN: "true or false",
    Type.STRING: "text",
    Type.INT: "a whole number of 32 bits",
    Type.SHORT: "a whole number of 16 bits",
    Type.LONG: "a whole number of 64 bits",
    Type.DOUBLE: "a number",
    Type.LIST: "a comma-separated list",
    Type.CLASS: "a class name",
    Type.PASSWORD: "a secret",
}
