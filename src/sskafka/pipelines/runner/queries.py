"""The streaming queries of a pipeline: one a sink, and one for dead letters. Each has its own checkpoint.

Separate queries keep each sink exactly once by its own means: Parquet by Spark's file log, topics by transactions,
Delta by transaction versions in the table. They read the topics again each; a topic is made for that.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import assert_never

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.files.model import ConsoleSink, DeltaSink, ParquetSink, Pipeline, Sink, TopicSink
from sskafka.pipelines.runner.delta import DeltaWriter
from sskafka.pipelines.runner.recovery import DEAD_LETTERS, transactional_prefix
from sskafka.pipelines.runner.tables import connector_of, dead_letters, parsed, read_records, table
from sskafka.pipelines.runner.transforming import TransformError, transformed

_START_ATTEMPTS = 3
_START_POLL_S = 0.1
_TOO_SLOW = "Python worker failed to connect back"


def result_of(spark: SparkSession, pipeline: Pipeline, bootstrap: str, query: str) -> DataFrame:
    """The transformed rows, read for one query."""
    tables = {
        source.name: table(parsed(read_records(spark, pipeline, source, bootstrap, query), source), source)
        for source in pipeline.sources
    }
    return transformed(spark, pipeline, tables)


def start_queries(spark: SparkSession, pipeline: Pipeline, bootstrap: str) -> list[StreamingQuery]:
    """Starts them all; when one cannot start, those before it are stopped."""
    starters = [partial(_start_sink, spark, pipeline, sink, bootstrap) for sink in pipeline.sinks]
    if pipeline.has_dead_letters:
        starters.append(partial(_start_dead_letters, spark, pipeline, bootstrap))
    started: list[StreamingQuery] = []
    try:
        for start in starters:
            started.append(start_patiently(start))  # noqa: PERF401  what has started must be known when a later one fails
    except BaseException:
        for query in started:
            query.stop()
        raise
    return started


def start_patiently(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A query whose source has been found, before the next one starts.

    Spark gives each query's Python processes ten seconds to come up. On a busy machine those of several queries at
    once are too slow; what failed for that alone has done nothing yet and is started again."""
    for attempt in range(_START_ATTEMPTS):
        query = start()
        while query.isActive and "nitializing" in query.status["message"]:
            time.sleep(_START_POLL_S)
        failure = query.exception()
        if failure is None or _TOO_SLOW not in str(failure) or attempt == _START_ATTEMPTS - 1:
            break
    return query


def checkpoint_of(pipeline: Pipeline, query: str) -> str:
    return f"{pipeline.checkpoint_root}/{query}"


def _start_sink(spark: SparkSession, pipeline: Pipeline, sink: Sink, bootstrap: str) -> StreamingQuery:
    rows = result_of(spark, pipeline, bootstrap, sink.name)
    match sink:
        case ParquetSink():
            writer = rows.writeStream.format("parquet").option("path", pipeline.resolved(sink.path))
            if sink.partition_by:
                writer = writer.partitionBy(*sink.partition_by)
        case TopicSink():
            writer = _topic_writer(spark, pipeline, sink, as_records(rows, sink), bootstrap)
        case ConsoleSink():
            writer = rows.writeStream.format("console").option("numRows", str(sink.rows)).option("truncate", "false")
        case DeltaSink():
            writer = rows.writeStream.foreachBatch(DeltaWriter(pipeline, sink, checkpoint_of(pipeline, sink.name)))
        case other:
            assert_never(other)
    return _started(pipeline, sink.name, writer.outputMode(str(pipeline.output_mode)))


def _start_dead_letters(spark: SparkSession, pipeline: Pipeline, bootstrap: str) -> StreamingQuery:
    letters: DataFrame | None = None
    for source in pipeline.sources:
        if source.has_dead_letters:
            records = read_records(spark, pipeline, source, bootstrap, f"{DEAD_LETTERS}.{source.name}")
            of_source = dead_letters(parsed(records, source), pipeline, source)
            letters = of_source if letters is None else letters.union(of_source)
    assert letters is not None
    sink = TopicSink(DEAD_LETTERS, pipeline.dead_letter_topic)
    return _started(pipeline, DEAD_LETTERS, _topic_writer(spark, pipeline, sink, letters, bootstrap))


def as_records(rows: DataFrame, sink: TopicSink) -> DataFrame:
    """Rows as key and value: a column each, or all columns as JSON."""
    for name in (sink.key, sink.value):
        if name and name not in rows.columns:
            raise TransformError(f"the topic sink needs the column {name!r}; there are {', '.join(rows.columns)}")
    value = sf.col(sink.value) if sink.value else sf.to_json(sf.struct("*"))
    columns = [value.cast("binary").alias("value")]
    if sink.key:
        columns.append(sf.col(sink.key).cast("string").alias("key"))
    return rows.select(*columns)


def _topic_writer(
    spark: SparkSession, pipeline: Pipeline, sink: TopicSink, records: DataFrame, bootstrap: str
) -> DataStreamWriter:
    writer = records.writeStream.format(connector_of(pipeline, spark)).option(BOOTSTRAP, bootstrap)
    return (
        writer.option("topic", sink.topic)
        .option("deliveryGuarantee", sink.guarantee)
        .option("transactionalIdPrefix", transactional_prefix(pipeline, sink.name))
        .option("includeHeaders", "true")
    )


def _started(pipeline: Pipeline, query: str, writer: DataStreamWriter) -> StreamingQuery:
    writer = writer.queryName(f"{pipeline.name}.{query}").option("checkpointLocation", checkpoint_of(pipeline, query))
    if pipeline.trigger.is_available_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=pipeline.trigger.interval).start()
