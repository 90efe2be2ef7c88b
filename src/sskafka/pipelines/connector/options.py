"""The connector's options: those of Spark's own Kafka source and sink, and a few additional ones.

Properties of Kafka's clients have the prefix `kafka.`. Spark passes options as text with case-insensitive names, which
`option_reader` reads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from sskafka.client.config import ConnectionConfig, ConsumerConfig, configured
from sskafka.client.errors import ConfigError
from sskafka.model.ids import TopicPartition, topic_name_problem
from sskafka.model.listeners import PLAINTEXT
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.offsets import EARLIEST, LATEST, Offsets, parse_assignment, parse_offsets
from sskafka.pipelines.connector.option_reader import OptionReader

C = TypeVar("C")

BOOTSTRAP = "kafka.bootstrap.servers"
CONTROL_TOPIC = "sskafka-spark-commits"

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
    "fetchOffset.numRetries",  # of Spark's own source; here kafka.default.api.timeout.ms limits the retries
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
    """The partitions to read: exactly one of the three fields is set."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        return self.pattern or ",".join(self.topics) or ",".join(map(str, self.partitions))


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """Where to start or to end: the first of the three fields that is set."""

    timestamp: int | None = None
    timestamps: Offsets | None = None
    offsets: Offsets | str = "latest"

    @property
    def explicit_offsets(self) -> Offsets:
        """The offsets of single partitions."""
        return {} if isinstance(self.offsets, str) else self.offsets

    def is_explicit_for(self, partition: TopicPartition) -> bool:
        """Return whether the partition has a numeric offset or a timestamp, not just earliest or latest."""
        has_time = self.timestamp is not None or self.timestamps is not None
        return has_time or self.explicit_offsets.get(partition, LATEST) >= 0

    def says(self, word: str, number: int) -> bool:
        """Return whether this is `word` (earliest or latest), or contains the `number` that means the same for a
        partition."""
        if self.timestamp is not None or self.timestamps is not None:
            return False
        return self.offsets == word or number in self.explicit_offsets.values()


@dataclass(frozen=True, slots=True)
class SourceOptions:
    bootstrap: str
    properties: dict[str, str] = field(repr=False)
    """Client properties of Kafka, which may contain passwords."""
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
    """While this file exists, a stream starts no new micro-batch, so that it can be stopped between two of them."""

    @property
    def connection(self) -> ConnectionConfig:
        return _checked(lambda: configured(ConnectionConfig, {"client.id": "sskafka-spark", **self.properties}))

    @property
    def consumer(self) -> ConsumerConfig:
        """The consumer settings. Fetches are large by default, because a task reads whole ranges."""
        large = {"max.partition.fetch.bytes": str(FETCH_BYTES), "fetch.max.bytes": str(2 * FETCH_BYTES)}
        return _checked(lambda: configured(ConsumerConfig, {**large, **self.properties}))


@dataclass(frozen=True, slots=True)
class SinkOptions:
    bootstrap: str
    properties: dict[str, str] = field(repr=False)
    """Client properties of Kafka, which may contain passwords."""
    topic: str | None
    guarantee: Guarantee
    transactional_id_prefix: str
    transaction_timeout_ms: int
    control_topic: str
    checkpoint: str = ""
    """The location of the query's checkpoint; empty if a setting of the session determines it."""
    pipeline_run: str = ""
    """The run of a pipeline that started the query."""
    query_id: str = ""
    """The query of a batch job that writes one of its batches; streaming queries have their own id."""
    query_run: str = ""
    batch: int = 0

    @property
    def connection(self) -> ConnectionConfig:
        return _checked(lambda: configured(ConnectionConfig, {"client.id": "sskafka-spark", **self.properties}))

    @property
    def compression(self) -> str:
        return self.properties.get("compression.type", "none")


def source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    reader = OptionReader(options, SOURCE_OPTIONS)
    starting = _offset_spec(reader, "starting", "latest" if streaming else "earliest")
    ending = _offset_spec(reader, "ending", "latest")
    if streaming:
        _check_stream(reader)
    else:
        _check_batch(starting, ending)
    least, most = _checked_limits(reader)
    subscription = _subscription(reader)
    chosen = SourceOptions(
        bootstrap=reader.required(BOOTSTRAP),
        properties=reader.properties(),
        subscription=subscription,
        starting=starting,
        ending=ending,
        unmatched_timestamp_is_error=reader.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
        == "error",
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=reader.duration_ms("maxTriggerDelay", "15m"),
        min_partitions=reader.number("minPartitions", 0, at_least=1) or 0,
        max_records_per_partition=reader.number("maxRecordsPerPartition", None, at_least=1),
        records_per_task=reader.number("recordsPerTask", RECORDS_PER_TASK, at_least=0) or 0,
        fail_on_data_loss=reader.flag("failOnDataLoss", True),
        include_headers=reader.flag("includeHeaders", False),
        group_id=reader.text("kafka.group.id", "") or reader.text("groupIdPrefix", f"spark-sskafka-{subscription}"),
        poll_timeout_ms=reader.number("kafkaConsumer.pollTimeoutMs", 120_000, at_least=1) or 0,
        pause_file=reader.text("pauseFile", ""),
    )
    reader.warn_of_unknown(SOURCE_OPTIONS)
    _check_security(chosen.connection)
    return chosen


def includes_headers(options: Mapping[str, str]) -> bool:
    """Return the only option that changes the columns of the source."""
    return OptionReader(options, ()).flag("includeHeaders", False)


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    reader = OptionReader(options, SINK_OPTIONS)
    topic = reader.text("topic", "") or None
    problem = topic_name_problem(topic) if topic else None
    if problem:
        raise OptionError("topic", problem)
    chosen = SinkOptions(
        bootstrap=reader.required(BOOTSTRAP),
        properties=reader.properties(),
        topic=topic,
        guarantee=Guarantee(reader.choice("deliveryGuarantee", tuple(Guarantee))),
        transactional_id_prefix=reader.text("transactionalIdPrefix", reader.text("queryName", "")),
        transaction_timeout_ms=reader.number("transactionTimeoutMs", 900_000, at_least=1_000) or 0,
        control_topic=reader.text("controlTopic", CONTROL_TOPIC),
        checkpoint=reader.text("checkpointLocation", ""),
        pipeline_run=reader.text("pipelineRun", ""),
        query_id=reader.text("queryId", ""),
        query_run=reader.text("queryRun", ""),
        batch=reader.number("batchId", 0, at_least=0) or 0,
    )
    _check_security(chosen.connection)
    return chosen


def _check_security(config: ConnectionConfig) -> None:
    """Raise OptionError if the properties of TLS and SASL do not fit together. The files are read when connecting."""
    if config.security_protocol.upper() != PLAINTEXT:
        from sskafka.client.security import client_security  # noqa: PLC0415  not for PLAINTEXT

        _checked(lambda: client_security(config))


def _subscription(reader: OptionReader) -> Subscription:
    names = [name for name in SUBSCRIPTIONS if reader.has_any(name)]
    if len(names) != 1:
        problem = "one of them is needed" if not names else f"set only one of them, not {', '.join(names)}"
        raise OptionError("/".join(SUBSCRIPTIONS), problem)
    text = reader.text(names[0], "")
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


def _offset_spec(reader: OptionReader, which: str, default: str) -> OffsetSpec:
    """Return the option that applies. Options that it overrides are not parsed."""
    by_timestamp = f"{which}OffsetsByTimestamp"
    if reader.has_any(f"{which}Timestamp"):
        return OffsetSpec(timestamp=reader.number(f"{which}Timestamp", None, at_least=0))
    if reader.has_any(by_timestamp):
        return OffsetSpec(timestamps=parse_offsets(by_timestamp, reader.text(by_timestamp, "")))
    offsets = reader.text(f"{which}Offsets", default)
    if offsets.lower() in {"earliest", "latest"}:
        return OffsetSpec(offsets=offsets.lower())
    return OffsetSpec(offsets=parse_offsets(f"{which}Offsets", offsets))


def _check_batch(starting: OffsetSpec, ending: OffsetSpec) -> None:
    """Raise if a batch would read nothing."""
    if starting.says("latest", LATEST):
        raise OptionError("startingOffsets", "'latest' (-1) would read nothing in a batch; use earliest or JSON")
    if ending.says("earliest", EARLIEST):
        raise OptionError("endingOffsets", "'earliest' (-2) would read nothing; use latest or JSON")
    for option, first, last in (
        ("startingOffsets", starting.explicit_offsets, ending.explicit_offsets),
        ("startingOffsetsByTimestamp", starting.timestamps or {}, ending.timestamps or {}),
    ):
        for partition, begin in first.items():
            if begin > last.get(partition, begin) >= 0:
                raise OptionError(option, f"{partition} would begin at {begin} and end at {last[partition]}")


def _check_stream(reader: OptionReader) -> None:
    if reader.has_any("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        raise OptionError(
            "endingOffsets", "a stream has no end; use Trigger.AvailableNow to read the available records"
        )


def _checked_limits(reader: OptionReader) -> tuple[int | None, int | None]:
    least = reader.number("minOffsetsPerTrigger", None, at_least=1)
    most = reader.number("maxOffsetsPerTrigger", None, at_least=1)
    if least is not None and most is not None and least > most:
        raise OptionError("minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger, {most}")
    return least, most


def _checked(make: Callable[[], C]) -> C:
    try:
        return make()
    except ConfigError as error:
        raise OptionError("kafka.*", str(error)) from None
