"""The streaming queries of a pipeline: one for each sink, and one for dead letters. Each has its own checkpoint.

With separate queries each sink is exactly-once by its own means: Parquet by Spark's file log, topics by transactions,
Delta by transaction versions in the table. Each query reads the topics itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.connector.selection import Connector
from sskafka.pipelines.connector.topic_batches import TopicBatches
from sskafka.pipelines.files.pipeline import DEAD_LETTERS, OutputMode, Pipeline
from sskafka.pipelines.files.sink import ConsoleSink, DeltaSink, IcebergSink, JdbcSink, ParquetSink, Sink, TopicSink
from sskafka.pipelines.files.source import Source
from sskafka.pipelines.runner.backfill_range import SourceRange
from sskafka.pipelines.runner.connectors import is_connect, writer_of
from sskafka.pipelines.runner.database import JdbcSinkError
from sskafka.pipelines.runner.delta import DeltaWriter
from sskafka.pipelines.runner.iceberg import IcebergWriter
from sskafka.pipelines.runner.jdbc import JdbcWriter
from sskafka.pipelines.runner.naming import FileMistakeError, query_name
from sskafka.pipelines.runner.observing import observed
from sskafka.pipelines.runner.parquet_batches import foreign_batches
from sskafka.pipelines.runner.progress import OUT, ROWS
from sskafka.pipelines.runner.recovery import checkpoint_of, transactional_prefix
from sskafka.pipelines.runner.retries import settled, start_with_retries, with_retries
from sskafka.pipelines.runner.tables import dead_letters, parsed, read_range, read_records, table
from sskafka.pipelines.runner.transforming import transformed


@dataclass(frozen=True, slots=True)
class RunContext:
    """Objects that all queries of a run share."""

    spark: SparkSession
    pipeline: Pipeline
    bootstrap: str
    pause: str = ""
    """While a file of this name exists, no query starts a new micro-batch."""
    run_id: str = ""
    """The run of the pipeline. It owns the queries that write topics, and supersedes older runs."""
    ranges: Mapping[str, SourceRange] | None = None
    """The range of each source in a backfill; None for streams."""


def result_of(run: RunContext, query: str, wanted: str = "") -> DataFrame:
    """Return the rows of the table `wanted`, or of the result, read for one query."""
    tables = {
        source.name: table(_parsed_for(run, source, query), run.pipeline, source) for source in run.pipeline.sources
    }
    return transformed(run.spark, run.pipeline, tables, wanted)


def _parsed_for(run: RunContext, source: Source, query: str) -> DataFrame:
    if run.ranges is not None:
        records = read_range(run.spark, run.pipeline, source, run.bootstrap, run.ranges[source.name])
    else:
        records = read_records(run.spark, run.pipeline, source, run.bootstrap, query, run.pause)
    return parsed(records, run.pipeline, source)


def start_queries(run: RunContext) -> list[StreamingQuery]:
    """Start the first query alone, then all others together. If one fails to start, the others are stopped.

    When a stream of a Python source starts, Spark (PythonStreamingSourceRunner.init) adds the environment of the worker
    to the map in the source's function. It is a HashMap that all queries share and that is serialized with every task.
    Two streams that add keys at the same time damage it, and no job can be submitted any more. The keys are always the
    same: after one stream has started, the others only replace values, which is safe."""
    count = len(run.pipeline.sinks) + run.pipeline.has_dead_letters
    writers = [with_retries(partial(_writer, run, index)) for index in range(count)]
    started: list[StreamingQuery] = []
    try:
        started.append(start_with_retries(writers[0].start))
        for writer in writers[1:]:
            started.append(with_retries(writer.start))  # noqa: PERF401  queries that have started must be known if a later one fails
        for index, writer in enumerate(writers[1:], 1):
            started[index] = settled(started[index], writer.start)
    except BaseException:
        for query in started:
            query.stop()
        raise
    return started


def start_again(run: RunContext, index: int) -> StreamingQuery:
    """Start one of the queries again; it continues at its checkpoint."""
    return start_with_retries(with_retries(partial(_writer, run, index)).start)


def _writer(run: RunContext, index: int) -> DataStreamWriter:
    """Return the writer of a sink, or of the dead letters, whose index follows that of the last sink."""
    return _sink_writer(run, index) if index < len(run.pipeline.sinks) else _dead_letter_writer(run)


def _sink_writer(run: RunContext, index: int) -> DataStreamWriter:
    pipeline, sink = run.pipeline, run.pipeline.sinks[index]
    rows = result_of(run, sink.name, sink.table)
    check_columns(pipeline, index, rows.columns)
    match sink:
        case ParquetSink():
            directory = pipeline.resolved(sink.path)
            foreign = foreign_batches(run.spark, directory, checkpoint_of(pipeline, sink.name))
            if foreign:
                raise FileMistakeError(f"{pipeline.position(f'sinks[{index}].parquet.path')}: {foreign}")
            writer = counted(rows).writeStream.format("parquet").option("path", directory)
            if sink.partition_by:
                writer = writer.partitionBy(*sink.partition_by)
        case TopicSink():
            writer = _topic_writer(run, sink, as_records(rows, sink), pipeline.output_mode)
        case ConsoleSink():
            writer = counted(rows).writeStream.format("console").option("truncate", "false")
            writer = writer.option("numRows", str(sink.rows))
        case DeltaSink():
            table_writer = DeltaWriter(pipeline, sink, checkpoint_of(pipeline, sink.name))
            writer = counted(rows).writeStream.foreachBatch(table_writer)
        case IcebergSink():
            iceberg_writer = IcebergWriter(pipeline, sink, checkpoint_of(pipeline, sink.name))
            writer = counted(rows).writeStream.foreachBatch(iceberg_writer)
        case JdbcSink():
            writer = counted(rows).writeStream.foreachBatch(jdbc_writer(run, index, sink, rows.columns))
        case other:
            assert_never(other)
    return _ready(pipeline, sink.name, writer.outputMode(str(pipeline.output_mode)))


def jdbc_writer(run: RunContext, index: int, sink: JdbcSink, columns: Sequence[str]) -> JdbcWriter:
    """Return the writer after a check that the database can be written."""
    if is_connect(run.spark):
        where = run.pipeline.position(f"sinks[{index}].jdbc")
        raise FileMistakeError(
            f"{where}: a Spark Connect server cannot write to databases exactly once; use another --master"
        )
    writer = JdbcWriter(run.pipeline, sink, checkpoint_of(run.pipeline, sink.name))
    try:
        writer.check(run.spark, columns)
    except JdbcSinkError as error:
        raise FileMistakeError(f"{run.pipeline.position(f'sinks[{index}].jdbc.{error.field}')}: {error}") from None
    return writer


def check_columns(pipeline: Pipeline, index: int, columns: Sequence[str]) -> None:
    """Raise if a sink names a column that the rows lack: Spark would find this in the middle of a batch, or never."""
    sink = pipeline.sinks[index]
    match sink:
        case ParquetSink():
            wanted = {"partition_by": sink.partition_by}
        case DeltaSink():
            deleting = (sink.delete_column,) if sink.delete_column else ()
            wanted = {"partition_by": sink.partition_by, "merge_keys": sink.merge_keys, "delete_column": deleting}
        case IcebergSink():
            wanted = {"partition_by": sink.partition_by}
        case JdbcSink():
            wanted = {"merge_keys": sink.merge_keys, "column_types": tuple(sink.column_types)}
        case TopicSink():
            wanted = {"key": (sink.key,) if sink.key else (), "value": (sink.value,) if sink.value else ()}
        case ConsoleSink():
            wanted = {}
        case other:
            assert_never(other)
    for field, names in wanted.items():
        for name in names:
            if name not in columns:
                where = pipeline.position(f"sinks[{index}].{kind_of(sink)}.{field}")
                raise FileMistakeError(f"{where}: there is no column {name!r}; the result has {', '.join(columns)}")


def kind_of(sink: Sink) -> str:
    """Return the kind of the sink as in the file."""
    return type(sink).__name__.removesuffix("Sink").lower()


def counted(rows: DataFrame) -> DataFrame:
    return observed(rows, OUT, sf.count(sf.lit(1)).alias(ROWS))


def _dead_letter_writer(run: RunContext) -> DataStreamWriter:
    sink = TopicSink(DEAD_LETTERS, run.pipeline.dead_letter_topic)
    return _ready(run.pipeline, DEAD_LETTERS, _topic_writer(run, sink, letters_of(run)))


def letters_of(run: RunContext) -> DataFrame:
    """Return the dead letters of all sources as records."""
    letters: DataFrame | None = None
    for source in run.pipeline.sources:
        if source.has_dead_letters:
            rows = _parsed_for(run, source, f"{DEAD_LETTERS}.{source.name}")
            of_source = dead_letters(rows, run.pipeline, source)
            letters = of_source if letters is None else letters.union(of_source)
    assert letters is not None
    return letters


def as_records(rows: DataFrame, sink: TopicSink) -> DataFrame:
    """Return rows with key and value: one column each, or all columns as JSON."""
    value = sf.col(sink.value) if sink.value else sf.to_json(sf.struct("*"))
    columns = [value.cast("binary").alias("value")]
    if sink.key:
        columns.append(sf.col(sink.key).cast("string").alias("key"))
    return rows.select(*columns)


def _topic_writer(
    run: RunContext, sink: TopicSink, records: DataFrame, mode: OutputMode = OutputMode.APPEND
) -> DataStreamWriter:
    connector = writer_of(run.spark, run.pipeline, sink)
    options = topic_options(run, sink, connector)
    if connector == Connector.SSKAFKA and mode is OutputMode.UPDATE:
        return counted(records).writeStream.foreachBatch(TopicBatches(options))
    return records.writeStream.format(connector).options(**options)


def topic_options(run: RunContext, sink: TopicSink, connector: str) -> dict[str, str]:
    """Return the options of the connector for a query that writes a topic."""
    own = {BOOTSTRAP: run.bootstrap, "topic": sink.topic, "includeHeaders": "true"}
    options = {**run.pipeline.client_options, **own}
    if connector == Connector.KAFKA:
        return options
    return {
        **options,
        "deliveryGuarantee": sink.guarantee,
        "pipelineRun": run.run_id,
        "transactionalIdPrefix": transactional_prefix(run.pipeline, sink.name),
        "checkpointLocation": checkpoint_of(run.pipeline, sink.name),
    }


def _ready(pipeline: Pipeline, query: str, writer: DataStreamWriter) -> DataStreamWriter:
    writer = writer.queryName(query_name(pipeline, query)).option("checkpointLocation", checkpoint_of(pipeline, query))
    if pipeline.trigger.is_available_now:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=pipeline.trigger.interval)
