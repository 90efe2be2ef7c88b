"""From a YAML file to a Pipeline. Every mistake that can be seen without Spark is found here, with its line.

docs/pipelines.md describes the fields.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path

import yaml

from sskafka.model.ids import topic_name_problem
from sskafka.pipelines.connector.choosing import AUTO, OURS, SPARKS_OWN
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.offsets import parse_offsets
from sskafka.pipelines.connector.options import BOOTSTRAP, Guarantee, source_options
from sskafka.pipelines.files.ddl import Column, Schema, SchemaError, checked, parse_column, parse_ddl
from sskafka.pipelines.files.document import Fields, PipelineFileError, load
from sskafka.pipelines.files.jdbc import jdbc_sink
from sskafka.pipelines.files.model import (
    DEAD_LETTERS,
    Action,
    ConsoleSink,
    DeltaSink,
    Expectation,
    IcebergSink,
    JdbcSink,
    OutputMode,
    ParquetSink,
    Pipeline,
    PythonTransform,
    RecordFormat,
    Sink,
    Source,
    SqlTransform,
    Step,
    Tombstones,
    TopicSink,
    Transform,
    Trigger,
)
from sskafka.pipelines.files.variables import FileChoices

RECORD_COLUMNS = ("_key", "_topic", "_partition", "_offset", "_timestamp")
"""What every source's table has beside the fields of its schema."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_TABLE = re.compile(r"[A-Za-z_]\w*")
_DURATION = re.compile(r"\d+\s*(milliseconds?|seconds?|minutes?|hours?|days?)")
_TIMES = ("timestamp", "timestamp_ntz")
_SINK_KINDS = ("parquet", "delta", "iceberg", "jdbc", "topic", "console")
_IDENTIFIER = re.compile(r"\w+(\.\w+)+")


def load_pipeline(path: Path, choices: FileChoices | None = None) -> Pipeline:
    """Read a pipeline file; raises PipelineFileError that names the line of every problem."""
    fields, problems = load(path, choices or FileChoices())
    pipeline = _pipeline(fields, path)
    fields.finish()
    if problems.found:
        raise PipelineFileError(path, problems.found, problems.secrets)
    return pipeline


def _pipeline(fields: Fields, path: Path) -> Pipeline:
    sources = _sources(fields)
    steps = _steps(fields, [source.name for source in sources], path)
    tables = [source.name for source in sources] + [step.name for step in steps]
    pipeline = Pipeline(
        name=_checked_name(fields),
        sources=sources,
        steps=steps,
        transform=_transform(fields, tables, path, has_steps=bool(steps)),
        sinks=_sinks(fields),
        expectations=_expectations(fields, allowed=(Action.WARN, Action.DROP, Action.FAIL)),
        trigger=_trigger(fields),
        output_mode=fields.choice("output_mode", OutputMode, OutputMode.APPEND),
        strict=_one_of(fields, "strict", ("false", "true")) == "true",
        after=_python(fields, path, "after") if "after" in fields else None,
        checkpoint=fields.text("checkpoint", ""),
        dead_letters=_topic(fields, "dead_letters", ""),
        connector=_one_of(fields, "connector", (AUTO, OURS, SPARKS_OWN)),
        lineage=_lineage(fields),
        spark=fields.pairs("spark"),
        path=path,
        lines=fields.problems.lines,
        secrets=fields.problems.secrets,
    )
    _check_tables_of_sinks(fields, pipeline.sinks, tables)
    _check_together(fields, pipeline)
    return _with_honest_guarantees(fields, pipeline)


def _lineage(fields: Fields) -> str:
    target = fields.text("lineage", "")
    if target and not target.startswith(("http://", "https://", "file:")):
        fields.problem("lineage", f"{target!r} is neither http://HOST:PORT, https://HOST nor file:PATH")
    return target


def _checked_name(fields: Fields) -> str:
    name = fields.text("name")
    if name and not _NAME.fullmatch(name):
        fields.problem("name", f"{name!r} must begin with a small letter and have small letters, digits, - and _ only")
    return name


def _check_together(fields: Fields, pipeline: Pipeline) -> None:
    has_files = [sink for sink in pipeline.sinks if isinstance(sink, ParquetSink)]
    if has_files and pipeline.output_mode is not OutputMode.APPEND:
        fields.problem(
            "output_mode", f"Parquet files cannot be changed: use append, or a delta sink for {pipeline.output_mode}"
        )
    _check_modes(fields, pipeline)
    read = {topic for source in pipeline.sources for topic in source.topics}
    for sink in pipeline.sinks:
        if isinstance(sink, TopicSink) and sink.topic in read:
            fields.problem("sinks", f"the topic {sink.topic!r} is read and written: the pipeline would never end")
    _check_names_of_expectations(fields, pipeline)
    if pipeline.dead_letter_topic in read:
        fields.problem("dead_letters", f"{pipeline.dead_letter_topic!r} is a source of the same pipeline")


def _with_honest_guarantees(fields: Fields, pipeline: Pipeline) -> Pipeline:
    """Spark's own connector knows no transactions: what it writes is there at least once."""
    if pipeline.connector != SPARKS_OWN:
        return pipeline
    sinks: list[Sink] = []
    for place, sink in enumerate(pipeline.sinks):
        where = f"sinks[{place}].topic.guarantee"
        if isinstance(sink, TopicSink) and sink.guarantee == Guarantee.EXACTLY_ONCE and where in pipeline.lines:
            text = "Spark's own connector (connector: kafka) writes at least once; use connector: sskafka or auto"
            fields.problems.add_at(where, text)
        sinks.append(replace(sink, guarantee=str(Guarantee.AT_LEAST_ONCE)) if isinstance(sink, TopicSink) else sink)
    return replace(pipeline, sinks=tuple(sinks))


def _check_modes(fields: Fields, pipeline: Pipeline) -> None:
    """Output modes that a kind of sink cannot keep: found here, not by Spark in the middle of a start."""
    mode = pipeline.output_mode
    for sink in pipeline.sinks:
        if isinstance(sink, IcebergSink) and mode is OutputMode.UPDATE:
            fields.problem("output_mode", "Iceberg tables take append and complete; use a delta sink to update rows")
        if isinstance(sink, JdbcSink) and mode is OutputMode.UPDATE and not sink.merge_keys:
            text = f"the jdbc sink {sink.name!r} needs merge_keys to update rows: the columns by which a row is found"
            fields.problem("output_mode", text)
        if isinstance(sink, TopicSink) and mode is OutputMode.COMPLETE:
            text = "a topic cannot be emptied: complete would write the whole result again with each batch; use append"
            fields.problem("output_mode", text)


def _check_names_of_expectations(fields: Fields, pipeline: Pipeline) -> None:
    """Spark counts by name over the whole of a query."""
    lists = [(f"sources.{source.name}.expectations", source.expectations) for source in pipeline.sources]
    lists += [(f"steps.{step.name}.expectations", step.expectations) for step in pipeline.steps]
    seen: dict[str, str] = {}
    for where, expectations in (*lists, ("expectations", pipeline.expectations)):
        for number, expectation in enumerate(expectations):
            place = f"{where}[{number}].name"
            other = seen.setdefault(expectation.name, place)
            if other != place:
                text = f"{expectation.name!r} is the name of {other.removesuffix('.name')} already; take another"
                fields.problems.add_at(place, text)


# Sources


def _sources(fields: Fields) -> tuple[Source, ...]:
    inner = fields.mapping("sources")
    if inner is None:
        if "sources" not in fields:
            fields.problem("sources", "is missing: name at least one table and its topic")
        return ()
    sources = []
    for name in inner.names():
        source = inner.mapping(name)
        if source is not None:
            sources.append(_source(name, source))
            source.finish()
    if not sources:
        fields.problem("sources", "has no source")
    return tuple(sources)


def _source(name: str, fields: Fields) -> Source:
    if not _TABLE.fullmatch(name):
        fields.problems.add(fields.node, fields.where, f"{name!r} cannot be a table's name in SQL")
    record_format = fields.choice("format", RecordFormat, RecordFormat.JSON)
    schema = _schema(fields, record_format)
    source = Source(
        name=name,
        topics=_topics(fields),
        pattern=_pattern(fields),
        format=record_format,
        schema=schema,
        avro_schema=_avro_schema(fields, record_format),
        framing=_one_of(fields, "framing", ("none", "confluent")),
        tombstones=fields.choice("tombstones", Tombstones, _usual_tombstones(record_format)),
        starting=_starting(fields),
        event_time=fields.text("event_time", ""),
        watermark=_duration(fields, "watermark"),
        dedupe=fields.texts("dedupe"),
        max_offsets_per_trigger=fields.number("max_offsets_per_trigger"),
        expectations=_expectations(fields, allowed=tuple(Action)),
        options=fields.pairs("options"),
    )
    _check_source(fields, source)
    _check_options(fields, source)
    return source


def _usual_tombstones(record_format: RecordFormat) -> Tombstones:
    """Where a schema says what a value holds, none at all is a mistake unless the file says otherwise."""
    has_schema = record_format in {RecordFormat.JSON, RecordFormat.AVRO}
    return Tombstones.DLQ if has_schema else Tombstones.KEEP


def _topics(fields: Fields) -> tuple[str, ...]:
    """`topic: one`, `topics: [several]` or neither, with a pattern instead."""
    given = [name for name in ("topic", "topics", "pattern") if name in fields]
    if len(given) != 1:
        problem = "topic is missing (or topics, or pattern)" if not given else f"give only one of {', '.join(given)}"
        fields.problems.add(fields.node, fields.where, problem)
        return ()
    names = fields.texts(given[0]) if given[0] != "pattern" else ()
    for name in names:
        problem_text = topic_name_problem(name)
        if problem_text:
            fields.problem(given[0], problem_text)
    return names


def _pattern(fields: Fields) -> str:
    pattern = fields.text("pattern", "")
    try:
        re.compile(pattern)
    except re.error as error:
        fields.problem("pattern", f"{pattern!r} is not a regular expression: {error}")
    return pattern


def _schema(fields: Fields, record_format: RecordFormat) -> Schema | None:
    if "schema" not in fields:
        if record_format is RecordFormat.JSON:
            fields.problems.add(
                fields.node,
                fields.where,
                "schema is missing: json needs one, such as `schema: user string, at timestamp`",
            )
        return None
    if record_format is not RecordFormat.JSON:
        if record_format is not RecordFormat.AVRO:
            fields.problem("schema", f"{record_format} has no schema; remove it, or use format: json")
        return None
    try:
        return _schema_of_node(fields)
    except SchemaError as error:
        fields.problem("schema", str(error))
        return None


def _schema_of_node(fields: Fields) -> Schema:
    """A text in Spark's DDL, or a mapping of names to types."""
    if not isinstance(fields.node_of("schema"), yaml.MappingNode):
        return parse_ddl(fields.text("schema", ""))
    inner = fields.mapping("schema")
    assert inner is not None
    columns: list[Column] = []
    for name in inner.names():
        try:
            columns.append(parse_column(name, inner.text(name, "")))
        except SchemaError as error:
            inner.problem(name, str(error))
    return checked(columns)


def _avro_schema(fields: Fields, record_format: RecordFormat) -> str:
    if record_format is not RecordFormat.AVRO:
        return ""
    from sskafka.pipelines.files.avro_schema import AvroSchemaError, parse_avro_schema  # noqa: PLC0415  rarely needed

    text = fields.text("schema", "")
    if not text:
        fields.problem("schema", "is missing: avro needs the writer's schema, as JSON text")
        return ""
    try:
        parse_avro_schema(text)
    except AvroSchemaError as error:
        fields.problem("schema", str(error))
    return text


def _starting(fields: Fields) -> str:
    text = fields.text("starting", "earliest")
    if text not in {"earliest", "latest"} and not text.startswith("{"):
        fields.problem("starting", f"{text!r} is neither earliest nor latest nor JSON of offsets")
    elif text.startswith("{"):
        try:
            parse_offsets("starting", text)
        except OptionError as error:
            fields.problem("starting", error.problem)
    return text


def _check_source(fields: Fields, source: Source) -> None:
    columns = _columns(source)
    for name in ("event_time", "dedupe"):
        given = fields.texts(name)
        for column in given:
            if columns is not None and column not in columns:
                fields.problem(name, f"there is no column {column!r}; the table has {', '.join(columns)}")
    _check_event_time(fields, source)
    if source.watermark and not source.event_time:
        fields.problem("watermark", "needs event_time: the column whose time it follows")
    if source.event_time and not source.watermark:
        fields.problem("event_time", "needs watermark: how late a record may be, such as `watermark: 10 minutes`")
    if source.dedupe and not source.watermark:
        fields.problem("dedupe", "needs event_time and watermark: without them every key would be kept for ever")


def _check_options(fields: Fields, source: Source) -> None:
    """As the connector will read them, with stand-ins for what a run adds."""
    try:
        source_options({BOOTSTRAP: "localhost:9092", "subscribe": "any", **source.options}, streaming=True)
    except OptionError as error:
        name = next((name for name in source.options if name.lower() == error.option.lower()), None)
        inner = fields.mapping("options")
        if inner is not None and name is not None:
            inner.problem(name, error.problem)
        else:
            fields.problem("options", str(error))


def _check_event_time(fields: Fields, source: Source) -> None:
    columns = () if source.schema is None else source.schema.columns
    for column in columns:
        if column.name == source.event_time and column.type not in _TIMES:
            fields.problem("event_time", f"the column {column.name} is {column.type}; its schema must say timestamp")


def _columns(source: Source) -> tuple[str, ...] | None:
    """The columns of the table as far as they are known without Spark."""
    match source.format:
        case RecordFormat.JSON:
            return None if source.schema is None else (*source.schema.names, *RECORD_COLUMNS)
        case RecordFormat.TEXT:
            return ("value", *RECORD_COLUMNS)
        case RecordFormat.RAW:
            return ("key", "value", "headers", *RECORD_COLUMNS)
        case RecordFormat.AVRO:
            return None


# Transformation and expectations


def _steps(fields: Fields, tables: list[str], path: Path) -> tuple[Step, ...]:
    """The steps in the order of the file: each sees the sources and the steps above it."""
    inner = fields.mapping("steps")
    if inner is None:
        return ()
    steps: list[Step] = []
    for name in inner.names():
        step = inner.mapping(name)
        if step is not None:
            steps.append(_step(name, step, [*tables, *(above.name for above in steps)], path))
            step.finish()
    return tuple(steps)


def _step(name: str, fields: Fields, tables: list[str], path: Path) -> Step:
    if not _TABLE.fullmatch(name):
        fields.problems.add(fields.node, fields.where, f"{name!r} cannot be a table's name in SQL")
    if name in tables:
        fields.problems.add(
            fields.node, fields.where, f"there is a source {name!r} already; give the step another name"
        )
    expectations = _expectations(fields, allowed=(Action.WARN, Action.DROP, Action.FAIL))
    return Step(name, _sql_or_python(fields, tables, path), expectations)


def _transform(fields: Fields, tables: list[str], path: Path, *, has_steps: bool) -> Transform:
    """Without one, the rows of the last step, or of the only source, go to the sinks as they are."""
    inner = fields.mapping("transform")
    if inner is None:
        if len(tables) > 1 and not has_steps:
            fields.problem("transform", "is missing: with several sources it says how they are joined")
        return SqlTransform(f"select * from {tables[-1]}" if tables else "")
    transform = _sql_or_python(inner, tables, path)
    inner.finish()
    return transform


def _sql_or_python(fields: Fields, tables: list[str], path: Path) -> Transform:
    given = [name for name in ("sql", "python") if name in fields]
    if len(given) != 1:
        fields.problems.add(fields.node, fields.where, "needs either sql or python")
        return SqlTransform("")
    return _sql(fields, tables) if given[0] == "sql" else _python(fields, path, "python")


def _sql(fields: Fields, tables: list[str]) -> Transform:
    sql = fields.text("sql").rstrip(";").strip()
    words = set(re.findall(r"\w+", sql))
    if tables and not any(table in words for table in tables):
        fields.problem("sql", f"it reads none of the sources and steps ({', '.join(tables)})")
    return SqlTransform(sql)


def _python(fields: Fields, path: Path, name: str) -> PythonTransform:
    location, colon, function = fields.text(name).rpartition(":")
    if not colon or not function.isidentifier():
        fields.problem(name, "must be module:function or file.py:function")
        return PythonTransform(location, function)
    if location.endswith(".py"):
        _check_python_file(fields, path.parent / location, function, name)
    return PythonTransform(location, function)


def _check_python_file(fields: Fields, file: Path, function: str, name: str) -> None:
    if not file.is_file():
        fields.problem(name, f"there is no file {file}")
        return
    try:
        module = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError as error:
        fields.problem(name, f"{file}:{error.lineno}: {error.msg}")
        return
    names = [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
    if function not in names:
        fields.problem(name, f"{file} has no function {function!r}; it has {', '.join(names) or 'none'}")


def _expectations(fields: Fields, *, allowed: tuple[Action, ...]) -> tuple[Expectation, ...]:
    def read(item: Fields) -> Expectation:
        expectation = Expectation(item.text("name"), item.text("check"), item.choice("action", Action, Action.WARN))
        if expectation.action not in allowed:
            item.problem(
                "action", f"{expectation.action} is for expectations of a source: only there is a record behind a row"
            )
        if not _TABLE.fullmatch(expectation.name):
            item.problem("name", f"{expectation.name!r} must have letters, digits and _ only")
        return expectation

    return fields.each("expectations", read)


# Sinks, trigger


def _sinks(fields: Fields) -> tuple[Sink, ...]:
    if "sinks" not in fields:
        fields.problem("sinks", f"is missing: a list of {', '.join(_SINK_KINDS)}")
    sinks = tuple(sink for sink in fields.each("sinks", _sink) if sink is not None)
    names = [sink.name for sink in sinks]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            fields.problem("sinks", f"two sinks are called {name!r}; give one of them another `name`")
    if DEAD_LETTERS in names:
        fields.problem("sinks", f"{DEAD_LETTERS!r} is the query for dead letters; give the sink another `name`")
    return sinks


def _sink(item: Fields) -> Sink | None:
    kinds = [kind for kind in _SINK_KINDS if kind in item]
    if len(kinds) != 1:
        given = [name for name in item.names() if name in item]
        wrong = f"{', '.join(given)}: " if given else ""
        item.problems.add(
            item.node, item.where, f"{wrong}a sink is one of {', '.join(_SINK_KINDS)}, with its fields below it"
        )
        return None
    inner = item.mapping(kinds[0])
    if inner is None:
        return None
    sink = _sink_of(kinds[0], inner)
    inner.finish()
    return sink


def _check_tables_of_sinks(fields: Fields, sinks: tuple[Sink, ...], tables: list[str]) -> None:
    for sink in sinks:
        if sink.table and sink.table not in tables:
            text = f"the sink {sink.name!r} is from {sink.table!r}, which is no table; there are {', '.join(tables)}"
            fields.problem("sinks", text)


def _sink_of(kind: str, fields: Fields) -> Sink:
    return replace(_sink_of_kind(kind, fields), table=fields.text("from", ""))


def _sink_of_kind(kind: str, fields: Fields) -> Sink:
    name = fields.text("name", kind)
    match kind:
        case "parquet":
            return ParquetSink(name, fields.text("path"), fields.texts("partition_by"))
        case "delta":
            return _delta_sink(name, fields)
        case "iceberg":
            return _iceberg_sink(name, fields)
        case "jdbc":
            return jdbc_sink(name, fields)
        case "topic":
            return TopicSink(
                name,
                _topic(fields, "topic"),
                fields.text("key", ""),
                fields.text("value", ""),
                _one_of(fields, "guarantee", ("exactly-once", "at-least-once")),
                fields.number("partitions") or -1,
            )
        case _:
            return ConsoleSink(name, fields.number("rows", 20) or 20)


def _delta_sink(name: str, fields: Fields) -> DeltaSink:
    sink = DeltaSink(
        name,
        fields.text("path"),
        fields.texts("partition_by"),
        fields.texts("merge_keys"),
        fields.text("delete_column", ""),
        _one_of(fields, "evolve", ("false", "true")) == "true",
    )
    if sink.delete_column and not sink.merge_keys:
        fields.problem("delete_column", "needs merge_keys: the columns by which the row to delete is found")
    return sink


def _iceberg_sink(name: str, fields: Fields) -> IcebergSink:
    """`catalog` is a name that pyiceberg's configuration explains, or a mapping of properties."""
    identifier = fields.text("table")
    if identifier and not _IDENTIFIER.fullmatch(identifier):
        fields.problem("table", f"{identifier!r} is not a namespace and a table, such as sales.orders")
    is_mapping = "catalog" in fields and isinstance(fields.node_of("catalog"), yaml.MappingNode)
    properties = fields.pairs("catalog") if is_mapping else {}
    return IcebergSink(
        name,
        identifier,
        properties.pop("name", "default") if is_mapping else fields.text("catalog", "default"),
        properties,
        fields.texts("partition_by"),
        _one_of(fields, "evolve", ("false", "true")) == "true",
    )


def _trigger(fields: Fields) -> Trigger:
    text = fields.text("trigger", "1 second")
    if text in {"available-now", "once"}:
        return Trigger("")
    if not _DURATION.fullmatch(text):
        fields.problem("trigger", f"{text!r} is neither available-now nor a time such as `10 seconds`")
    return Trigger(text)


# Small values


def _topic(fields: Fields, name: str, default: str | None = None) -> str:
    topic = fields.text(name, default)
    problem = topic_name_problem(topic) if topic else None
    if problem:
        fields.problem(name, problem)
    return topic


def _duration(fields: Fields, name: str) -> str:
    text = fields.text(name, "")
    if text and not _DURATION.fullmatch(text):
        fields.problem(name, f"{text!r} is not a time such as `10 minutes`")
    return text


def _one_of(fields: Fields, name: str, choices: tuple[str, ...]) -> str:
    text = fields.text(name, choices[0])
    if text not in choices:
        fields.problem(name, f"{text!r} is none of {', '.join(choices)}")
    return text
