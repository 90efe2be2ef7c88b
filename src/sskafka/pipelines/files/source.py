"""Sources of a pipeline: topics that its transformations see as tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AliasChoices, Field, PlainValidator, ValidationInfo

from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.offsets import parse_offsets
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.files.ddl import Column, Schema, SchemaError, checked, parse_column, parse_ddl
from sskafka.pipelines.files.document import Fields, Location
from sskafka.pipelines.files.expectation import Action, Expectation
from sskafka.pipelines.files.validation import (
    NOT_IN_FILE,
    ONE_OR_MORE,
    Duration,
    FileModel,
    Texts,
    TopicName,
    WholeNumber,
    checked_by,
    raise_problems,
)

RECORD_COLUMNS = ("_key", "_topic", "_partition", "_offset", "_timestamp")
"""Columns that the table of every source has in addition to the fields of its schema."""

_TIMES = ("timestamp", "timestamp_ntz")


class RecordFormat(StrEnum):
    """How the value of a record is read."""

    JSON = "json"
    AVRO = "avro"
    TEXT = "text"
    RAW = "raw"

    @property
    def has_schema(self) -> bool:
        return self in {RecordFormat.JSON, RecordFormat.AVRO}


_COLUMNS = {RecordFormat.TEXT: ("value",), RecordFormat.RAW: ("key", "value", "headers")}
"""Columns of formats without a schema."""


class Framing(StrEnum):
    """The bytes before the Avro data in the value of a record."""

    NONE = "none"
    CONFLUENT = "confluent"


class Tombstones(StrEnum):
    """What happens to a record without a value, which deletes its key in a compacted topic."""

    DROP = "drop"
    DLQ = "dlq"
    KEEP = "keep"


def _pattern_problem(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return f"{text!r} is not a regular expression: {error}"
    return None


def _starting_problem(text: str) -> str | None:
    if text in {"earliest", "latest"}:
        return None
    if not text.startswith("{"):
        return f"{text!r} is neither earliest nor latest nor JSON of offsets"
    try:
        parse_offsets("starting", text)
    except OptionError as error:
        return error.problem
    return None


def _json_schema(value: Any, info: ValidationInfo) -> Schema | None:
    """Read text in Spark's DDL, or a mapping of column names to types."""
    record_format = info.data.get("format", RecordFormat.AVRO)
    if not record_format.has_schema:
        raise ValueError(f"{record_format} has no schema; remove it, or use format: json")
    if record_format is not RecordFormat.JSON:
        return None
    if not isinstance(value, Fields):
        return parse_ddl(_schema_text(value))
    columns: list[Column] = []
    problems: list[tuple[Location, str]] = []
    for name, text in value.items():
        try:
            columns.append(parse_column(name, _schema_text(text)))
        except SchemaError as error:
            problems.append(((name,), str(error)))
    raise_problems(problems)
    return checked(columns)


def _avro_schema(value: Any, info: ValidationInfo) -> str:
    if info.data.get("format") is not RecordFormat.AVRO:
        return ""
    from sskafka.pipelines.files.avro_schema import parse_avro_schema  # noqa: PLC0415  rarely needed

    parse_avro_schema(_schema_text(value))
    return str(value)


def _schema_text(value: Any) -> str:
    if not isinstance(value, str):
        raise SchemaError("must be text")
    return value


@dataclass(frozen=True, slots=True)
class Source(FileModel):
    """Topics that a transformation sees as a table called `name`."""

    name: Annotated[str, NOT_IN_FILE]
    topics: Annotated[tuple[TopicName, ...], ONE_OR_MORE, Field(validation_alias=AliasChoices("topic", "topics"))] = ()
    pattern: Annotated[str, checked_by(_pattern_problem)] = ""
    format: RecordFormat = RecordFormat.JSON
    schema: Annotated[Schema | None, PlainValidator(_json_schema)] = None
    avro_schema: Annotated[str, PlainValidator(_avro_schema), Field(validation_alias="schema")] = ""
    framing: Framing = Framing.NONE
    tombstones: Tombstones = Tombstones.KEEP
    starting: Annotated[str, checked_by(_starting_problem)] = "earliest"
    event_time: str = ""
    watermark: Duration = ""
    dedupe: Texts = ()
    max_offsets_per_trigger: WholeNumber | None = None
    expectations: tuple[Expectation, ...] = ()
    options: dict[str, str] = field(default_factory=dict, repr=False)
    """Options of the connector, which may contain passwords."""

    @classmethod
    def with_defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Where a schema says what a value contains, a record without a value is a mistake by default."""
        subscriptions = [name for name in ("topic", "topics", "pattern") if name in values]
        if len(subscriptions) > 1:
            raise ValueError(f"give only one of {', '.join(subscriptions)}")
        has_schema = values.get("format", RecordFormat.JSON) in (
            RecordFormat.JSON,
            RecordFormat.AVRO,
        )  # a value of the wrong type cannot be hashed
        return {"tombstones": Tombstones.DLQ if has_schema else Tombstones.KEEP, **values}

    @property
    def subscription(self) -> tuple[str, str]:
        """The connector's option and its value. The connector searches names for a pattern; here it is a whole name."""
        if self.pattern:
            return "subscribePattern", f"^(?:{self.pattern})$"
        return "subscribe", ",".join(self.topics)

    def reads(self, topic: str) -> bool:
        """Return whether the topic belongs to the source now, or will when it is created."""
        return re.search(self.subscription[1], topic) is not None if self.pattern else topic in self.topics

    def pattern_without(self, topics: list[str]) -> str:
        """Return the pattern without these topics, for Python and for Java."""
        excluded = "|".join(topic.replace(".", r"\.") for topic in topics)
        return f"(?!(?:{excluded})$)(?:{self.pattern})"

    @property
    def has_dead_letters(self) -> bool:
        """Whether records of this source can go to the dead-letter topic."""
        return (
            self.format.has_schema
            or self.tombstones is Tombstones.DLQ
            or any(expectation.action is Action.DLQ for expectation in self.expectations)
        )

    def problems(self) -> Iterator[tuple[Location, str]]:
        if not self.topics and not self.pattern:
            yield (), "topic is missing (or topics, or pattern)"
        if self.format is RecordFormat.JSON and self.schema is None:
            yield (), "schema is missing: json needs one, such as `schema: user string, at timestamp`"
        if self.format is RecordFormat.AVRO and not self.avro_schema:
            yield (), "schema is missing: avro needs the writer's schema, as JSON text"
        yield from self._column_problems()
        if self.watermark and not self.event_time:
            yield ("watermark",), "needs event_time: the column whose time it follows"
        if self.event_time and not self.watermark:
            yield ("event_time",), "needs watermark: how late a record may be, such as `watermark: 10 minutes`"
        if self.dedupe and not self.watermark:
            yield ("dedupe",), "needs event_time and watermark: without them every key would be kept for ever"
        yield from self._option_problems()

    def _column_problems(self) -> Iterator[tuple[Location, str]]:
        names = self.schema.names if self.schema else _COLUMNS.get(self.format)
        columns = None if names is None else (*names, *RECORD_COLUMNS)
        for name, wanted in (("event_time", (self.event_time,)), ("dedupe", self.dedupe)):
            for column in filter(None, wanted):
                if columns is not None and column not in columns:
                    yield (name,), f"there is no column {column!r}; the table has {', '.join(columns)}"
        for known in self.schema.columns if self.schema else ():
            if known.name == self.event_time and known.type not in _TIMES:
                yield ("event_time",), f"the column {known.name} is {known.type}; its schema must say timestamp"

    def _option_problems(self) -> Iterator[tuple[Location, str]]:
        """Read the options as the connector will; a run adds the brokers and the subscription."""
        try:
            source_options({BOOTSTRAP: "localhost:9092", "subscribe": "any", **self.options}, streaming=True)
        except OptionError as error:
            name = next((name for name in self.options if name.lower() == error.option.lower()), None)
            yield ("options",) if name is None else ("options", name), str(error) if name is None else error.problem
