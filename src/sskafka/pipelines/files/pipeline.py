"""Pipelines: sources, transformations and sinks, as a file describes them. docs/pipelines.md describes the fields."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, Any

from pydantic import PlainValidator, TypeAdapter

from sskafka.client.config import ConnectionConfig
from sskafka.model.pipeline_events import DEAD_LETTERS_QUERY, EVENTS_TOPIC
from sskafka.pipelines.connector.client_properties import (
    as_options,
    pipeline_connection,
    property_problems,
    secret_values,
)
from sskafka.pipelines.connector.option_reader import PROPERTY_PREFIX
from sskafka.pipelines.connector.options import CONTROL_TOPIC, Guarantee
from sskafka.pipelines.connector.selection import Connector
from sskafka.pipelines.files.document import Fields, Location, path_text, read_document
from sskafka.pipelines.files.expectation import RowExpectations
from sskafka.pipelines.files.sink import SINK_KINDS, IcebergSink, JdbcSink, ParquetSink, SinkField, TopicSink
from sskafka.pipelines.files.source import Source
from sskafka.pipelines.files.transform import PythonFunction, SqlTransform, Step, Transform, TransformField
from sskafka.pipelines.files.validation import (
    DURATION,
    NOT_IN_FILE,
    FileModel,
    Text,
    TopicName,
    keyed,
    matching,
    validated,
)
from sskafka.pipelines.files.variables import FileOptions, masked

NO_TRANSFORM = SqlTransform("")
DEAD_LETTERS = DEAD_LETTERS_QUERY
"""The name of the query that writes dead letters; no sink may have it."""


class OutputMode(StrEnum):
    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The interval between micro-batches; empty: process the available records, then stop."""

    interval: str = "1 second"

    @property
    def is_available_now(self) -> bool:
        return not self.interval

    @property
    def is_immediate(self) -> bool:
        """Whether each micro-batch begins when the one before it has ended, so that batches are small."""
        return self.interval.strip(ascii_lowercase + " ") == "0"


_TRIGGER = TypeAdapter(
    Annotated[
        str, matching(f"available-now|once|{DURATION}", "is neither available-now nor a time such as `10 seconds`")
    ]
)


def _read_trigger(value: Any) -> Trigger:
    text = _TRIGGER.validate_python(value)
    return Trigger("" if text in {"available-now", "once"} else text)


@dataclass(frozen=True, slots=True)
class Pipeline(FileModel):
    name: Annotated[
        Text,
        matching(
            r"[a-z][a-z0-9_-]{0,62}",
            "must begin with a small letter and have at most 63 small letters, digits, - and _",
        ),
    ]
    sources: Annotated[tuple[Source, ...], keyed(Source)] = ()
    sinks: tuple[SinkField, ...] = ()
    transform: TransformField = NO_TRANSFORM
    """Makes the result, which is written to every sink that names no other table."""
    steps: Annotated[tuple[Step, ...], keyed(Step)] = ()
    expectations: RowExpectations = ()
    trigger: Annotated[Trigger, PlainValidator(_read_trigger)] = Trigger()
    output_mode: OutputMode = OutputMode.APPEND
    strict: bool = False
    """Whether a run in which an expectation was not met counts as failed."""
    after: PythonFunction | None = None
    """`function(pipeline)`, called when a run has ended well; what it returns is printed."""
    checkpoint: str = ""
    dead_letters: TopicName = ""
    connector: Connector = Connector.AUTO
    kafka: dict[str, str] = field(default_factory=dict, repr=False)
    """Properties of Kafka's clients: `security.protocol`, `sasl.*`, `ssl.*`, ... They may contain passwords."""
    lineage: Annotated[
        str, matching(r"(?s)(https?://|file:).*", "is neither http://HOST:PORT, https://HOST nor file:PATH")
    ] = ""
    """Where OpenLineage events go: the URL of a server, or file:PATH; empty: OPENLINEAGE_URL, if that is set."""
    spark: dict[str, str] = field(default_factory=dict)
    path: Annotated[Path, NOT_IN_FILE] = Path()
    lines: Annotated[dict[str, int], NOT_IN_FILE] = field(default_factory=dict, compare=False)
    """The line of each field in the file, by its path, such as `sources.clicks.expectations[0].check`."""
    secrets: Annotated[frozenset[str], NOT_IN_FILE] = field(default=frozenset(), repr=False, compare=False)
    """Values that must not appear in errors, events or output."""

    def position(self, where: str, below: int = 0) -> str:
        """Return file, line and path of a field for an error message; `below` counts lines within its text."""
        line = self.lines.get(where)
        return where if line is None else f"{self.path}:{line + below}: {where}"

    def masked(self, text: str) -> str:
        """Return the text without the secrets of the file."""
        return masked(text, self.secrets)

    @property
    def connection(self) -> ConnectionConfig:
        """How the runner connects to the brokers."""
        return pipeline_connection(self.kafka)

    @property
    def client_options(self) -> dict[str, str]:
        """How Spark's queries connect to the brokers: options of their connector."""
        return as_options(self.kafka)

    def with_properties(self, properties: Mapping[str, str]) -> "Pipeline":
        """Return the pipeline with these client properties in addition to its own."""
        secrets = self.secrets | secret_values(properties)
        return replace(self, kafka={**self.kafka, **properties}, secrets=secrets)

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters or f"{self.name}-dead-letters"

    @property
    def has_dead_letters(self) -> bool:
        return any(source.has_dead_letters for source in self.sources)

    @property
    def written_topics(self) -> list[str]:
        """The topics that a run writes: those of sinks and dead letters, commit decisions and events."""
        sinks = [sink for sink in self.sinks if isinstance(sink, TopicSink)]
        if self.has_dead_letters:
            sinks.append(TopicSink(DEAD_LETTERS, self.dead_letter_topic))
        decisions = [CONTROL_TOPIC] if any(sink.guarantee == Guarantee.EXACTLY_ONCE for sink in sinks) else []
        return list(dict.fromkeys([*(sink.topic for sink in sinks), *decisions, EVENTS_TOPIC]))

    def resolved(self, location: str) -> str:
        """Return a path relative to the directory of the file as an absolute path; URLs are returned unchanged."""
        if "://" in location:
            return location
        return str((self.path.parent / location).resolve())

    @property
    def checkpoint_root(self) -> str:
        return self.resolved(self.checkpoint or f"checkpoints/{self.name}")

    @property
    def tables(self) -> list[str]:
        """The names of sources and steps, each after those that it can read."""
        return [*(source.name for source in self.sources), *(step.name for step in self.steps)]

    # Validation

    @classmethod
    def with_defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Without a transformation, the rows of the last step, or of the only source, are the result.

        Spark's own connector writes without transactions, so with it the default guarantee is at-least-once."""
        tables = [table for name in ("sources", "steps") for table in _mapping(values.get(name))]
        if tables and (len(tables) == 1 or _mapping(values.get("steps"))):
            values.setdefault("transform", Fields(sql=f"select * from {tables[-1]}"))
        if values.get("connector") == Connector.KAFKA and isinstance(values.get("sinks"), list):
            for sink in values["sinks"]:
                _mapping(_mapping(sink).get("topic")).setdefault("guarantee", Guarantee.AT_LEAST_ONCE)
        return values

    def problems(self) -> Iterator[tuple[Location, str]]:
        if not self.sources:
            yield ("sources",), "is missing: name at least one table and its topic"
        if not self.sinks:
            yield ("sinks",), f"is missing: a list of {', '.join(SINK_KINDS)}"
        yield from self._transform_problems()
        yield from self._sink_problems()
        yield from self._output_mode_problems()
        yield from self._expectation_problems()
        if self.checkpoint.startswith("hdfs:///"):
            text = "Spark keeps checkpoints only at addresses with a host: use hdfs://HOST:PORT/DIRECTORY"
            yield ("checkpoint",), text
        for name, text in property_problems(self.kafka):
            yield ("kafka", name) if name else ("kafka",), text
        yield from self.loops()

    def loops(self) -> Iterator[tuple[Location, str]]:
        """Report topics that the pipeline reads and writes."""
        for source in self.sources:
            own = [topic for topic in self.written_topics if source.reads(topic)]
            text = f"the pipeline reads and writes {', '.join(own)}, so it would never end"
            if own and source.pattern:
                yield ("sources", source.name), f"{text}; exclude it: `pattern: {source.pattern_without(own)}`"
            elif own:
                yield ("sources", source.name), f"{text}; read another topic, or write to another one"

    def _transform_problems(self) -> Iterator[tuple[Location, str]]:
        tables = [source.name for source in self.sources]
        for step in self.steps:
            if step.name in tables:
                yield ("steps", step.name), f"there is a source {step.name!r} already; give the step another name"
            yield from _unread(step.transform, tables, ("steps", step.name, "sql"))
            tables.append(step.name)
        if self.transform == NO_TRANSFORM and len(tables) > 1:
            yield ("transform",), "is missing: with several sources it says how they are joined"
        else:
            yield from _unread(self.transform, tables, ("transform", "sql"))

    def _sink_problems(self) -> Iterator[tuple[Location, str]]:
        for name, count in Counter(sink.name for sink in self.sinks).items():
            if count > 1:
                yield ("sinks",), f"two sinks are called {name!r}; give one of them another `name`"
            if name == DEAD_LETTERS:
                yield ("sinks",), f"{DEAD_LETTERS!r} is the query for dead letters; give the sink another `name`"
        for number, sink in enumerate(self.sinks):
            if sink.table and sink.table not in self.tables:
                known = ", ".join(self.tables)
                yield (
                    ("sinks",),
                    f"the sink {sink.name!r} is from {sink.table!r}, which is no table; there are {known}",
                )
            if isinstance(sink, TopicSink) and sink.guarantee == Guarantee.EXACTLY_ONCE and self.connector == "kafka":
                text = "Spark's own connector (connector: kafka) writes at least once; use connector: sskafka or auto"
                yield ("sinks", number, "topic", "guarantee"), text

    def _output_mode_problems(self) -> Iterator[tuple[Location, str]]:
        """Report output modes that a kind of sink does not have, before Spark finds them while queries start."""
        mode = self.output_mode
        for sink in self.sinks:
            match sink:
                case ParquetSink() if mode is not OutputMode.APPEND:
                    text = f"Parquet files cannot be changed: use append, or a delta sink for {mode}"
                case IcebergSink() if mode is OutputMode.UPDATE:
                    text = "Iceberg tables take append and complete; use a delta sink to update rows"
                case JdbcSink(merge_keys=()) if mode is OutputMode.UPDATE:
                    text = f"the jdbc sink {sink.name!r} needs merge_keys to update rows: columns that identify a row"
                case TopicSink() if mode is OutputMode.COMPLETE:
                    text = "a topic cannot be emptied: complete would write all rows again with each batch; use append"
                case _:
                    continue
            yield ("output_mode",), text

    def _expectation_problems(self) -> Iterator[tuple[Location, str]]:
        """Report names that are used twice: Spark counts unmet expectations by name over a whole query."""
        lists: list[tuple[Location, RowExpectations]] = [
            *((("sources", source.name, "expectations"), source.expectations) for source in self.sources),
            *((("steps", step.name, "expectations"), step.expectations) for step in self.steps),
            (("expectations",), self.expectations),
        ]
        seen: dict[str, str] = {}
        for location, expectations in lists:
            for number, expectation in enumerate(expectations):
                here = path_text((*location, number))
                other = seen.setdefault(expectation.name, here)
                if other != here:
                    yield (
                        (*location, number, "name"),
                        f"{expectation.name!r} is the name of {other} already; take another",
                    )


def _mapping(value: Any) -> Fields:
    return value if isinstance(value, Fields) else Fields()


def _unread(transform: Transform, tables: list[str], location: Location) -> Iterator[tuple[Location, str]]:
    """Report SQL that contains the name of no table."""
    if isinstance(transform, SqlTransform) and tables and not set(tables) & set(re.findall(r"\w+", transform.sql)):
        yield location, f"it reads none of the sources and steps ({', '.join(tables)})"


def load_pipeline(path: Path, options: FileOptions | None = None) -> Pipeline:
    """Read a pipeline file; raises PipelineFileError that names the position of every problem."""
    document = read_document(path, options or FileOptions())
    pipeline = validated(Pipeline, document)
    secrets = document.secrets | secret_values(pipeline.kafka)
    for source in pipeline.sources:
        secrets |= secret_values({name.removeprefix(PROPERTY_PREFIX): text for name, text in source.options.items()})
    return replace(pipeline, path=path, lines=document.lines, secrets=frozenset(secrets))
