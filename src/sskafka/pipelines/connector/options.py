"""The connector's options: the names of Spark's own Kafka source and sink, and a few of our own.

Kafka's client properties are given with the prefix `kafka.`. Spark hands options over as text, with case-insensitive
names (`given`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from sskafka.client.config import ConnectionConfig, ConsumerConfig, configured
from sskafka.client.errors import ConfigError
from sskafka.model.ids import TopicPartition, topic_name_problem
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.given import GivenOptions
from sskafka.pipelines.connector.offsets import EARLIEST, LATEST, Offsets, parse_assignment, parse_offsets

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
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "recordsPerTask",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "kafka.group.id",
    "kafkaConsumer.pollTimeoutMs",
    "pauseFile",
    "fetchOffset.numRetries",  # of Spark's own source: here kafka.default.api.timeout.ms says how long is tried
    "fetchOffset.retryIntervalMs",
)
SINK_OPTIONS = (
    BOOTSTRAP,
    "topic",
    "deliveryGuarantee",
    "transactionalIdPrefix",
    "transactionTimeoutMs",
    "controlTopic",
    "checkpointLocation",
    "pipelineRun",
    "queryId",
    "queryRun",
    "batchId",
    "includeHeaders",
)
FETCH_BYTES = 16 * 1024 * 1024
RECORDS_PER_TASK = 100_000


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
    """Where to begin or to end: the first of the three that was given."""

    timestamp: int | None = None
    timestamps: Offsets | None = None
    offsets: Offsets | str = "latest"

    @property
    def given_offsets(self) -> Offsets:
        """The offsets of single partitions."""
        return {} if isinstance(self.offsets, str) else self.offsets

    def is_given_for(self, partition: TopicPartition) -> bool:
        """By a number, not by the word earliest or latest."""
        has_time = self.timestamp is not None or self.timestamps is not None
        return has_time or self.given_offsets.get(partition, LATEST) >= 0

    def says(self, word: str, number: int) -> bool:
        """Whether this is `word`, or says so of some partition by the `number` that stands for it."""
        if self.timestamp is not None or self.timestamps is not None:
            return False
        return self.offsets == word or number in self.given_offsets.values()


@dataclass(frozen=True, slots=True)
class SourceOptions:
    bootstrap: str
    properties: dict[str, str]
    subscription: Subscription
    starting: OffsetSpec
    ending: OffsetSpec
    unmatched_timestamp_is_error: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int
    max_records_per_partition: int | None
    records_per_task: int
    fail_on_data_loss: bool
    include_headers: bool
    group_id: str
    poll_timeout_ms: int
    pause_file: str = ""
    """While it is there, a stream begins no new micro-batch: so it can be stopped between two of them."""

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
    checkpoint: str = ""
    """Where Spark keeps the query's checkpoint; empty when a setting of the session says so."""
    pipeline_run: str = ""
    """The run of a pipeline that started the query."""
    query_id: str = ""
    """Of a batch job that writes one batch of a query; streaming queries have their own."""
    query_run: str = ""
    batch: int = 0

    @property
    def connection(self) -> ConnectionConfig:
        return _checked(lambda: configured(ConnectionConfig, {"client.id": "sskafka-spark", **self.properties}))

    @property
    def compression(self) -> str:
        return self.properties.get("compression.type", "none")


def source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    given = GivenOptions(options, SOURCE_OPTIONS)
    starting = _offset_spec(given, "starting", "latest" if streaming else "earliest")
    ending = _offset_spec(given, "ending", "latest")
    if streaming:
        _check_stream(given)
    else:
        _check_batch(starting, ending)
    least, most = _checked_limits(given)
    subscription = _subscription(given)
    chosen = SourceOptions(
        bootstrap=given.required(BOOTSTRAP),
        properties=given.properties(),
        subscription=subscription,
        starting=starting,
        ending=ending,
        unmatched_timestamp_is_error=given.choice("startingOffsetsByTimestampStrategy", ("error", "latest")) == "error",
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", "15m"),
        min_partitions=given.number("minPartitions", 0, at_least=1) or 0,
        max_records_per_partition=given.number("maxRecordsPerPartition", None, at_least=1),
        records_per_task=given.number("recordsPerTask", RECORDS_PER_TASK, at_least=0) or 0,
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        group_id=given.text("kafka.group.id", "") or given.text("groupIdPrefix", f"spark-sskafka-{subscription}"),
        poll_timeout_ms=given.number("kafkaConsumer.pollTimeoutMs", 120_000, at_least=1) or 0,
        pause_file=given.text("pauseFile", ""),
    )
    given.tell_unknown(SOURCE_OPTIONS)
    return chosen


def includes_headers(options: Mapping[str, str]) -> bool:
    """The one option that decides what columns there are."""
    return GivenOptions(options, ()).flag("includeHeaders", False)


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    given = GivenOptions(options, SINK_OPTIONS)
    topic = given.text("topic", "") or None
    problem = topic_name_problem(topic) if topic else None
    if problem:
        raise OptionError("topic", problem)
    return SinkOptions(
        bootstrap=given.required(BOOTSTRAP),
        properties=given.properties(),
        topic=topic,
        guarantee=Guarantee(given.choice("deliveryGuarantee", tuple(Guarantee))),
        transactional_id_prefix=given.text("transactionalIdPrefix", given.text("queryName", "")),
        transaction_timeout_ms=given.number("transactionTimeoutMs", 900_000, at_least=1_000) or 0,
        control_topic=given.text("controlTopic", "sskafka-spark-commits"),
        checkpoint=given.text("checkpointLocation", ""),
        pipeline_run=given.text("pipelineRun", ""),
        query_id=given.text("queryId", ""),
        query_run=given.text("queryRun", ""),
        batch=given.number("batchId", 0, at_least=0) or 0,
    )


def _subscription(given: GivenOptions) -> Subscription:
    names = [name for name in SUBSCRIPTIONS if given.has_any(name)]
    if len(names) != 1:
        problem = "one of them is needed" if not names else f"only one of them may be given, not {', '.join(names)}"
        raise OptionError("/".join(SUBSCRIPTIONS), problem)
    text = given.text(names[0], "")
    if not text:
        raise OptionError(names[0], "is empty")
    match names[0]:
        case "assign":
            return Subscription(partitions=tuple(parse_assignment("assign", text)))
        case "subscribePattern":
            return Subscription(pattern=text)
        case _:
            return Subscription(topics=_topic_names(text))


def _topic_names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise OptionError("subscribe", f"{text!r} names no topic")
    return names


def _offset_spec(given: GivenOptions, which: str, default: str) -> OffsetSpec:
    """What does not count is not read: a file may keep offsets for later."""
    by_timestamp = f"{which}OffsetsByTimestamp"
    if given.has_any(f"{which}Timestamp"):
        return OffsetSpec(timestamp=given.number(f"{which}Timestamp", None, at_least=0))
    if given.has_any(by_timestamp):
        return OffsetSpec(timestamps=parse_offsets(by_timestamp, given.text(by_timestamp, "")))
    offsets = given.text(f"{which}Offsets", default)
    if offsets.lower() in {"earliest", "latest"}:
        return OffsetSpec(offsets=offsets.lower())
    return OffsetSpec(offsets=parse_offsets(f"{which}Offsets", offsets))


def _check_batch(starting: OffsetSpec, ending: OffsetSpec) -> None:
    """A batch that can read nothing is a mistake, and told as such."""
    if starting.says("latest", LATEST):
        raise OptionError("startingOffsets", "'latest' (-1) would read nothing in a batch; use earliest or JSON")
    if ending.says("earliest", EARLIEST):
        raise OptionError("endingOffsets", "'earliest' (-2) would read nothing; use latest or JSON")
    for option, first, last in (
        ("startingOffsets", starting.given_offsets, ending.given_offsets),
        ("startingOffsetsByTimestamp", starting.timestamps or {}, ending.timestamps or {}),
    ):
        for partition, begin in first.items():
            if begin > last.get(partition, begin) >= 0:
                raise OptionError(option, f"{partition} would begin at {begin} and end at {last[partition]}")


def _check_stream(given: GivenOptions) -> None:
    if given.has_any("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        raise OptionError("endingOffsets", "a stream has no end; use Trigger.AvailableNow to read what is there now")


def _checked_limits(given: GivenOptions) -> tuple[int | None, int | None]:
    least = given.number("minOffsetsPerTrigger", None, at_least=1)
    most = given.number("maxOffsetsPerTrigger", None, at_least=1)
    if least is not None and most is not None and least > most:
        raise OptionError("minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger, {most}")
    return least, most


def _checked(make: Callable[[], C]) -> C:
    try:
        return make()
    except ConfigError as error:
        raise OptionError("kafka.*", str(error)) from None
