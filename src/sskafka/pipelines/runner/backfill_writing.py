"""Write the rows of a backfill to one sink, with the writers of streams and a single batch with the number 0."""

from typing import assert_never

from pyspark.sql import DataFrame

from sskafka.pipelines.connector.selection import Connector
from sskafka.pipelines.connector.topic_batches import TopicBatches
from sskafka.pipelines.files.pipeline import DEAD_LETTERS
from sskafka.pipelines.files.sink import ConsoleSink, DeltaSink, IcebergSink, JdbcSink, ParquetSink, Sink, TopicSink
from sskafka.pipelines.runner.backfill_state import BATCH
from sskafka.pipelines.runner.connectors import writer_of
from sskafka.pipelines.runner.delta import DeltaWriter
from sskafka.pipelines.runner.iceberg import IcebergWriter
from sskafka.pipelines.runner.observing import counting_batch
from sskafka.pipelines.runner.queries import (
    RunContext,
    as_records,
    check_columns,
    counted,
    jdbc_writer,
    letters_of,
    result_of,
    topic_options,
)
from sskafka.pipelines.runner.recovery import checkpoint_of
from sskafka.pipelines.runner.retries import with_retries


def write_query(run: RunContext, index: int) -> dict[str, int | None]:
    """Write one sink, or the dead letters, whose index follows that of the last sink. Return the row counts."""
    return with_retries(lambda: _write_query(run, index))


def _write_query(run: RunContext, index: int) -> dict[str, int | None]:
    with counting_batch() as counts:
        if index < len(run.pipeline.sinks):
            sink = run.pipeline.sinks[index]
            rows = result_of(run, sink.name, sink.table)
            check_columns(run.pipeline, index, rows.columns)
            _write_sink(run, index, sink, rows)
        else:
            _write_topic(run, TopicSink(DEAD_LETTERS, run.pipeline.dead_letter_topic), letters_of(run))
        return counts.collected()


def _write_sink(run: RunContext, index: int, sink: Sink, rows: DataFrame) -> None:
    pipeline = run.pipeline
    checkpoint = checkpoint_of(pipeline, sink.name)
    match sink:
        case ParquetSink():  # the directory belongs to the backfill: files of a killed run are overwritten
            counted(rows).write.mode("overwrite").parquet(
                pipeline.resolved(sink.path), partitionBy=list(sink.partition_by) or None
            )
        case DeltaSink():
            DeltaWriter(pipeline, sink, checkpoint)(counted(rows), BATCH)
        case IcebergSink():
            IcebergWriter(pipeline, sink, checkpoint)(counted(rows), BATCH)
        case JdbcSink():
            jdbc_writer(run, index, sink, rows.columns)(counted(rows), BATCH)
        case TopicSink():
            _write_topic(run, sink, as_records(rows, sink))
        case ConsoleSink():
            counted(rows).show(sink.rows, truncate=False)
        case other:
            assert_never(other)


def _write_topic(run: RunContext, sink: TopicSink, records: DataFrame) -> None:
    connector = writer_of(run.spark, run.pipeline, sink)
    options = topic_options(run, sink, connector)
    if connector == Connector.SSKAFKA:
        TopicBatches(options)(counted(records), BATCH)
    else:
        counted(records).write.format(connector).options(**options).save()
