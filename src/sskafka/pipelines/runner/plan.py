"""The plan of a pipeline: its graph, the schema of its result, and its backlog. No records are read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from sskafka.pipelines.connector.offsets import Offsets
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.connector.progress import committed_progress
from sskafka.pipelines.files.expectation import Expectation
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import ConsoleSink, DeltaSink, IcebergSink, JdbcSink, ParquetSink, Sink, TopicSink
from sskafka.pipelines.files.source import Source
from sskafka.pipelines.files.transform import PythonTransform, SqlTransform, Transform
from sskafka.pipelines.runner.errors import run_error
from sskafka.pipelines.runner.run import masking_secrets, planning_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Backlog:
    """The records of one source that one sink has not read yet."""

    source: str
    query: str
    partitions: int
    records: int
    is_first_run: bool


def graph(pipeline: Pipeline) -> Iterator[str]:
    """Return the pipeline as lines of text without secrets, from its topics to its sinks."""
    return map(pipeline.masked, _lines(pipeline))


def _lines(pipeline: Pipeline) -> Iterator[str]:
    tables: list[str] = []
    for source in pipeline.sources:
        yield f"{source.pattern or ', '.join(source.topics)} ── {source.format} ──> {source.name}"
        yield from (f"    {rule}" for rule in _rules(source))
        tables.append(source.name)
    for step in pipeline.steps:
        yield f"{_made_of(step.transform, tables)}> {step.name}"
        yield from (f"    {_expectation(one)}" for one in step.expectations)
        tables.append(step.name)
    yield f"{_made_of(pipeline.transform, tables)}> result"
    yield from (f"    {_expectation(one)}" for one in pipeline.expectations)
    for sink in pipeline.sinks:
        yield f"{sink.table or 'result'} ── {pipeline.output_mode} ──> {sink_text(sink)}"
    if pipeline.has_dead_letters:
        yield f"records that cannot be used ──> topic {pipeline.dead_letter_topic}"
    trigger = "available records, then the run ends" if pipeline.trigger.is_available_now else pipeline.trigger.interval
    yield f"trigger: {trigger}; checkpoint: {pipeline.checkpoint_root}"


def _made_of(transform: Transform, tables: list[str]) -> str:
    """Return the tables whose names occur in the transformation, and its kind."""
    match transform:
        case SqlTransform(sql):
            words = set(re.findall(r"\w+", sql))
            return f"{', '.join(table for table in tables if table in words)} ── SQL ──"
        case PythonTransform(location, function):
            return f"{', '.join(tables)} ── {location}:{function} ──"
        case other:
            assert_never(other)


def _rules(source: Source) -> Iterator[str]:
    yield from (_expectation(one) for one in source.expectations)
    if source.watermark:
        yield f"event time {source.event_time}, up to {source.watermark} late"
    if source.dedupe:
        yield f"one row each for {', '.join(source.dedupe)}"


def _expectation(expectation: Expectation) -> str:
    return f"expects {expectation.name} ({expectation.check}), else {expectation.action}"


def sink_text(sink: Sink) -> str:
    match sink:
        case ParquetSink():
            return f"parquet {sink.path}"
        case DeltaSink():
            return f"delta {sink.path}"
        case IcebergSink():
            return f"iceberg {sink.identifier}"
        case JdbcSink():
            return f"jdbc {sink.identifier}"
        case TopicSink():
            return f"topic {sink.topic} ({sink.guarantee})"
        case ConsoleSink():
            return "console"
        case other:
            assert_never(other)


def backlog(session: ClusterSession, pipeline: Pipeline, bootstrap: str) -> list[Backlog]:
    """Return what each sink has not read yet, according to the committed offsets of its group."""
    return [
        _backlog_of(session, pipeline, source, sink.name, bootstrap)
        for source in pipeline.sources
        for sink in pipeline.sinks
    ]


def _backlog_of(session: ClusterSession, pipeline: Pipeline, source: Source, query: str, bootstrap: str) -> Backlog:
    planner = Planner(planning_options(pipeline, source, bootstrap), session)
    latest = planner.latest()
    group = f"{pipeline.name}.{query}"
    done = session.run(committed_progress(session.cluster, group, latest))
    start: Offsets = {**(planner.earliest(latest) if done else planner.starting()), **done}
    waiting = sum(max(0, latest[partition] - start[partition]) for partition in latest)
    return Backlog(source.name, query, len(latest), waiting, not done)


def resolved_schema(spark: "SparkSession", pipeline: Pipeline, bootstrap: str) -> list[tuple[str, str]]:
    """Return the columns of the result; Spark analyzes the plan and reads nothing."""
    from sskafka.pipelines.runner.connectors import check_connector  # noqa: PLC0415  Spark is there now
    from sskafka.pipelines.runner.queries import RunContext, result_of  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.retries import with_retries  # noqa: PLC0415  see above

    run = RunContext(spark, pipeline, bootstrap)
    with masking_secrets(pipeline):
        check_connector(spark, pipeline)
        try:
            fields = with_retries(lambda: result_of(run, "plan").schema).fields
        except Exception as error:
            raise run_error(error) from error
    return [(field.name, field.dataType.simpleString()) for field in fields]
