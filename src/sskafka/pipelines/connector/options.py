"""The connector's options: the names of Spark's own Kafka source and sink, and a few of our own.

Kafka's client properties are given with the prefix `kafka.`. Spark hands options over as text, with case-insensitive
names. A name that is nearly one of ours is refused: Spark would ignore it without a word.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from sskafka.client.config import ConnectionConfig, ConsumerConfig, configured
from sskafka.client.errors import ConfigError
from sskafka.model.ids import TopicPartition, topic_name_problem
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.offsets import Offsets, parse_assignment, parse_offsets

C = TypeVar("C")

BOOTSTRAP = "kafka.bootstrap.servers"

SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")
SOURCE_OPTIONS = (
    BOOTSTRAP,
    *SUBSCRIPTIONS,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "recordsPerTask",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "kafka.group.id",
    "kafkaConsumer.pollTimeoutMs",
)
SINK_OPTIONS = (
    BOOTSTRAP,
    "topic",
    "deliveryGuarantee",
    "transactionalIdPrefix",
    "transactionTimeoutMs",
    "controlTopic",
    "includeHeaders",
)
FETCH_BYTES = 16 * 1024 * 1024
RECORDS_PER_TASK = 100_000

_DECIDED_HERE = {
    "key.deserializer": "keys are always read as bytes",
    "value.deserializer": "values are always read as bytes",
    "key.serializer": "keys are always written as bytes or text",
    "value.serializer": "values are always written as bytes or text",
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "progress is committed when Spark has committed a batch",
    "transactional.id": "use transactionalIdPrefix",
}
_SECURITY = ("security.", "sasl.", "ssl.")


class Guarantee(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class Subscription:
    """What to read: exactly one of the three is given."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        return self.pattern or ",".join(self.topics) or ",".join(map(str, self.partitions))


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """Where to begin or to end; the first of the three that is given counts."""

    timestamp: int | None = None
    timestamps: Offsets | None = None
    offsets: Offsets | str = "latest"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    bootstrap: str
    properties: dict[str, str]
    subscription: Subscription
    starting: OffsetSpec
    ending: OffsetSpec
    unmatched_timestamp_is_error: bool
    max_offsets_per_trigger: int | None
    min_partitions: int
    records_per_task: int
    fail_on_data_loss: bool
    include_headers: bool
    group_id: str
    poll_timeout_ms: int

    @property
    def connection(self) -> ConnectionConfig:
        return _checked(lambda: configured(ConnectionConfig, {"client.id": "sskafka-spark", **self.properties}))

    @property
    def consumer(self) -> ConsumerConfig:
        """Fetches are large unless the user says otherwise: a task reads one partition from end to end."""
        large = {"max.partition.fetch.bytes": str(FETCH_BYTES), "fetch.max.bytes": str(2 * FETCH_BYTES)}
        return _checked(lambda: configured(ConsumerConfig, {**large, **self.properties}))


@dataclass(frozen=True, slots=True)
class SinkOptions:
    bootstrap: str
    properties: dict[str, str]
    topic: str | None
    guarantee: Guarantee
    transactional_id_prefix: str
    transaction_timeout_ms: int
    control_topic: str

    @property
    def connection(self) -> ConnectionConfig:
        return _checked(lambda: configured(ConnectionConfig, {"client.id": "sskafka-spark", **self.properties}))

    @property
    def compression(self) -> str:
        return self.properties.get("compression.type", "none")


def source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    given = _Given(options, SOURCE_OPTIONS)
    starting = given.offset_spec("starting", "latest" if streaming else "earliest")
    if not streaming and starting.offsets == "latest":
        raise OptionError("startingOffsets", "'latest' would read nothing in a batch; use earliest or JSON")
    ending = given.offset_spec("ending", "latest")
    if ending.offsets == "earliest":
        raise OptionError("endingOffsets", "'earliest' would read nothing; use latest or JSON")
    if streaming and given.has_any("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        raise OptionError("endingOffsets", "a stream has no end; use Trigger.AvailableNow to read what is there now")
    strategy = given.text("startingOffsetsByTimestampStrategy", "error")
    if strategy not in {"error", "latest"}:
        raise OptionError("startingOffsetsByTimestampStrategy", f"{strategy!r} is neither error nor latest")
    subscription = given.subscription()
    return SourceOptions(
        bootstrap=given.required(BOOTSTRAP),
        properties=given.properties(),
        subscription=subscription,
        starting=starting,
        ending=ending,
        unmatched_timestamp_is_error=strategy == "error",
        max_offsets_per_trigger=given.number("maxOffsetsPerTrigger", None, at_least=1),
        min_partitions=given.number("minPartitions", 0, at_least=1) or 0,
        records_per_task=given.number("recordsPerTask", RECORDS_PER_TASK, at_least=0) or 0,
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        group_id=given.text("kafka.group.id", "") or given.text("groupIdPrefix", f"spark-sskafka-{subscription}"),
        poll_timeout_ms=given.number("kafkaConsumer.pollTimeoutMs", 120_000, at_least=1) or 0,
    )


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    given = _Given(options, SINK_OPTIONS)
    topic = given.text("topic", "") or None
    problem = topic_name_problem(topic) if topic else None
    if problem:
        raise OptionError("topic", problem)
    guarantee = given.text("deliveryGuarantee", Guarantee.EXACTLY_ONCE)
    if guarantee not in set(Guarantee):
        raise OptionError("deliveryGuarantee", f"{guarantee!r} is neither {' nor '.join(Guarantee)}")
    return SinkOptions(
        bootstrap=given.required(BOOTSTRAP),
        properties=given.properties(),
        topic=topic,
        guarantee=Guarantee(guarantee),
        transactional_id_prefix=given.text("transactionalIdPrefix", given.text("queryName", "")),
        transaction_timeout_ms=given.number("transactionTimeoutMs", 900_000, at_least=1_000) or 0,
        control_topic=given.text("controlTopic", "sskafka-spark-commits"),
    )


class _Given:
    """Options as the user gave them, looked up whatever their case."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        self._refuse_misspelled(known)

    def _refuse_misspelled(self, known: tuple[str, ...]) -> None:
        by_lower = {name.lower(): name for name in known}
        for name in self._values:
            near = get_close_matches(name, by_lower, n=1, cutoff=0.85)
            if near and name not in by_lower and not name.startswith("kafka."):
                raise OptionError(name, f"there is no such option; did you mean {by_lower[near[0]]}?")

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

    def subscription(self) -> Subscription:
        given = [name for name in SUBSCRIPTIONS if self.has_any(name)]
        if len(given) != 1:
            problem = "one of them is needed" if not given else f"only one of them may be given, not {', '.join(given)}"
            raise OptionError("/".join(SUBSCRIPTIONS), problem)
        text = self.text(given[0], "")
        if not text:
            raise OptionError(given[0], "is empty")
        match given[0]:
            case "assign":
                return Subscription(partitions=tuple(parse_assignment("assign", text)))
            case "subscribePattern":
                return Subscription(pattern=text)
            case _:
                return Subscription(
                    topics=tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
                )

    def offset_spec(self, which: str, default: str) -> OffsetSpec:
        by_timestamp = f"{which}OffsetsByTimestamp"
        offsets = self.text(f"{which}Offsets", default)
        return OffsetSpec(
            timestamp=self.number(f"{which}Timestamp", None, at_least=0),
            timestamps=parse_offsets(by_timestamp, self.text(by_timestamp, "")) if self.has_any(by_timestamp) else None,
            offsets=offsets.lower()
            if offsets.lower() in {"earliest", "latest"}
            else parse_offsets(f"{which}Offsets", offsets),
        )

    def properties(self) -> dict[str, str]:
        """Client properties, without their prefix."""
        properties = {
            name.removeprefix("kafka."): value
            for name, value in self._values.items()
            if name.startswith("kafka.") and name != BOOTSTRAP
        }
        for name in properties:
            if name in _DECIDED_HERE:
                raise OptionError(f"kafka.{name}", f"cannot be set: {_DECIDED_HERE[name]}")
            if name.startswith(_SECURITY):
                raise OptionError(f"kafka.{name}", "secured listeners are not supported yet; use a plaintext listener")
        return properties


def _checked(make: Callable[[], C]) -> C:
    try:
        return make()
    except ConfigError as error:
        raise OptionError("kafka.*", str(error)) from None
