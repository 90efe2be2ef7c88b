"""What a pipeline is: topics in, a transformation, sinks out. Values only; `parse` makes them from YAML."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from sskafka.pipelines.files.ddl import Schema
from sskafka.pipelines.files.variables import masked

DEAD_LETTERS = "dead-letters"
"""The query that writes them; sinks have names of their own."""


class RecordFormat(StrEnum):
    """How the value of a record is read."""

    JSON = "json"
    AVRO = "avro"
    TEXT = "text"
    RAW = "raw"


class Action(StrEnum):
    """What becomes of a row that does not meet an expectation."""

    WARN = "warn"
    DROP = "drop"
    DLQ = "dlq"
    FAIL = "fail"


class Tombstones(StrEnum):
    """What becomes of a record without a value, which in a compacted topic deletes its key."""

    DROP = "drop"
    DLQ = "dlq"
    KEEP = "keep"


class OutputMode(StrEnum):
    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Expectation:
    name: str
    check: str
    """A condition in SQL; null counts as not met."""
    action: Action


@dataclass(frozen=True, slots=True)
class Source:
    """Topics that the transformation sees as a table called `name`."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    format: RecordFormat = RecordFormat.JSON
    schema: Schema | None = None
    avro_schema: str = ""
    framing: str = "none"
    tombstones: Tombstones = Tombstones.KEEP
    starting: str = "earliest"
    event_time: str = ""
    watermark: str = ""
    dedupe: tuple[str, ...] = ()
    max_offsets_per_trigger: int | None = None
    expectations: tuple[Expectation, ...] = ()
    options: dict[str, str] = field(default_factory=dict)

    @property
    def subscription(self) -> tuple[str, str]:
        """The option of the connector. There a pattern is looked for in names; here it means whole names."""
        if self.pattern:
            return "subscribePattern", f"^(?:{self.pattern})$"
        return "subscribe", ",".join(self.topics)

    @property
    def has_dead_letters(self) -> bool:
        """Whether rows of this source can end in the dead-letter topic."""
        return (
            self.format in {RecordFormat.JSON, RecordFormat.AVRO}
            or self.tombstones is Tombstones.DLQ
            or any(expectation.action is Action.DLQ for expectation in self.expectations)
        )


@dataclass(frozen=True, slots=True)
class SqlTransform:
    sql: str


@dataclass(frozen=True, slots=True)
class PythonTransform:
    """`function(spark, sources)` of a module or a file; `sources` are the tables by name."""

    location: str
    function: str


Transform: TypeAlias = SqlTransform | PythonTransform


@dataclass(frozen=True, slots=True)
class Step:
    """A table made of other tables: of sources, and of the steps above it."""

    name: str
    transform: Transform
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class ParquetSink:
    name: str
    path: str
    partition_by: tuple[str, ...] = ()
    table: str = ""
    """The source or step whose rows are written, here and in the other sinks; empty: the result."""


@dataclass(frozen=True, slots=True)
class DeltaSink:
    name: str
    path: str
    partition_by: tuple[str, ...] = ()
    merge_keys: tuple[str, ...] = ()
    delete_column: str = ""
    """A boolean column, not kept itself: where it is true, the row of these keys leaves the table."""
    evolves: bool = False
    """Whether columns that the table lacks are added to it."""
    table: str = ""


@dataclass(frozen=True, slots=True)
class IcebergSink:
    name: str
    identifier: str
    """Namespace and table, as `sales.orders`."""
    catalog: str = "default"
    catalog_properties: dict[str, str] = field(default_factory=dict)
    """As pyiceberg has them: type, uri, warehouse, ...; empty: those of ~/.pyiceberg.yaml and the environment."""
    partition_by: tuple[str, ...] = ()
    evolves: bool = False
    table: str = ""


@dataclass(frozen=True, slots=True)
class JdbcSink:
    name: str
    url: str
    identifier: str
    """The table in the database, as `sales.orders`."""
    user: str = ""
    password: str = field(default="", repr=False)
    driver: str = ""
    """The Java class of the driver; empty: the usual one for the URL."""
    merge_keys: tuple[str, ...] = ()
    column_types: dict[str, str] = field(default_factory=dict)
    """Types of columns where the sink creates the table; the others have Spark's default for the database."""
    options: dict[str, str] = field(default_factory=dict)
    """Other options of Spark's JDBC writer and properties of the driver."""
    table: str = ""


@dataclass(frozen=True, slots=True)
class TopicSink:
    name: str
    topic: str
    key: str = ""
    """A column; empty: no key."""
    value: str = ""
    """A column; empty: all columns as JSON."""
    guarantee: str = "exactly-once"
    partitions: int = -1
    table: str = ""


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    name: str
    rows: int = 20
    table: str = ""


Sink: TypeAlias = ParquetSink | DeltaSink | IcebergSink | JdbcSink | TopicSink | ConsoleSink


@dataclass(frozen=True, slots=True)
class Trigger:
    """`interval` between micro-batches, or empty: read what is there now and end."""

    interval: str = "1 second"

    @property
    def is_available_now(self) -> bool:
        return not self.interval


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    transform: Transform
    """Makes the result, which goes to every sink that names no other table."""
    steps: tuple[Step, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    """Of the transformed rows; those have no single record behind them, so none can be dead-lettered."""
    trigger: Trigger = Trigger()
    output_mode: OutputMode = OutputMode.APPEND
    strict: bool = False
    """Whether a run in which an expectation was not met counts as failed."""
    after: PythonTransform | None = None
    """`function(pipeline)`, called when a run has ended well; what it answers is told."""
    checkpoint: str = ""
    dead_letters: str = ""
    connector: str = "auto"
    lineage: str = ""
    """Where OpenLineage events go: the URL of a server, or file:PATH; empty: OPENLINEAGE_URL, if that is set."""
    spark: dict[str, str] = field(default_factory=dict)
    path: Path = Path()
    lines: dict[str, int] = field(default_factory=dict, compare=False)
    """The line in the file of each field, by its path, such as `sources.clicks.expectations[0].check`."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Values that must not appear in errors, events or output."""

    def place(self, where: str, below: int = 0) -> str:
        """How a mistake in a field begins that shows later than the file is read; `below`: lines into its text."""
        line = self.lines.get(where)
        return where if line is None else f"{self.path}:{line + below}: {where}"

    def masked(self, text: str) -> str:
        """The text without the secrets of the file."""
        return masked(text, self.secrets)

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters or f"{self.name}-dead-letters"

    @property
    def has_dead_letters(self) -> bool:
        return any(source.has_dead_letters for source in self.sources)

    def resolved(self, location: str) -> str:
        """A path of the file, relative to the directory of the file; URLs stay as they are."""
        if "://" in location:
            return location
        return str((self.path.parent / location).resolve())

    @property
    def checkpoint_root(self) -> str:
        return self.resolved(self.checkpoint or f"checkpoints/{self.name}")
