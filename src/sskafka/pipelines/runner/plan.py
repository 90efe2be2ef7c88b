"""What a pipeline would do, without reading a record: its graph, the schema of its result, what waits for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from sskafka.pipelines.connector.offsets import Offsets
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.connector.progress import committed_progress
from sskafka.pipelines.files.model import (
    ConsoleSink,
    DeltaSink,
    Expectation,
    ParquetSink,
    Pipeline,
    PythonTransform,
    Sink,
    Source,
    SqlTransform,
    TopicSink,
)
from sskafka.pipelines.runner.errors import PipelineRunError, explained
from sskafka.pipelines.runner.run import planning_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for one sink in one source."""

    source: str
    query: str
    partitions: int
    records: int
    is_first_run: bool


def graph(pipeline: Pipeline) -> Iterator[str]:
    """The pipeline as lines of text, from its topics to its sinks."""
    for source in pipeline.sources:
        yield f"{source.pattern or ', '.join(source.topics)} ── {source.format} ──> {source.name}"
        yield from (f"    {step}" for step in _steps(source))
    match pipeline.transform:
        case SqlTransform():
            how = "SQL"
        case PythonTransform(location, function):
            how = f"{location}:{function}"
        case other:
            assert_never(other)
    yield f"{', '.join(source.name for source in pipeline.sources)} ── {how} ──> result"
    yield from (f"    {_expectation(one)}" for one in pipeline.expectations)
    for sink in pipeline.sinks:
        yield f"result ── {pipeline.output_mode} ──> {sink_text(sink)}"
    if pipeline.has_dead_letters:
        yield f"records that cannot be used ──> topic {pipeline.dead_letter_topic}"
    trigger = "what is there now, then it ends" if pipeline.trigger.is_available_now else pipeline.trigger.interval
    yield f"trigger: {trigger}; checkpoint: {pipeline.checkpoint_root}"


def _steps(source: Source) -> Iterator[str]:
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
        case TopicSink():
            return f"topic {sink.topic} ({sink.guarantee})"
        case ConsoleSink():
            return "console"
        case other:
            assert_never(other)


def backlog(session: ClusterSession, pipeline: Pipeline, bootstrap: str) -> list[Backlog]:
    """What each sink has not read yet, by the offsets that its group has committed."""
    return [
        _backlog_of(session, pipeline, source, sink.name, bootstrap)
        for source in pipeline.sources
        for sink in pipeline.sinks
    ]


def _backlog_of(session: ClusterSession, pipeline: Pipeline, source: Source, query: str, bootstrap: str) -> Backlog:
    planner = Planner(planning_options(source, bootstrap), session)
    latest = planner.latest()
    group = f"{pipeline.name}.{query}"
    done = session.run(committed_progress(session.cluster, group, latest))
    start: Offsets = {**(planner.earliest(latest) if done else planner.starting()), **done}
    waiting = sum(max(0, latest[partition] - start[partition]) for partition in latest)
    return Backlog(source.name, query, len(latest), waiting, not done)


def resolved_schema(spark: "SparkSession", pipeline: Pipeline, bootstrap: str) -> list[tuple[str, str]]:
    """The columns that the sinks get; Spark analyses the plan and reads nothing."""
    from sskafka.pipelines.runner.connectors import check_connector  # noqa: PLC0415  Spark is there now
    from sskafka.pipelines.runner.patience import patiently  # noqa: PLC0415  see above
    from sskafka.pipelines.runner.queries import Surroundings, result_of  # noqa: PLC0415  see above

    check_connector(spark, pipeline)
    run = Surroundings(spark, pipeline, bootstrap)
    try:
        fields = patiently(lambda: result_of(run, "plan").schema).fields
    except Exception as error:
        raise PipelineRunError(explained(error)) from error
    return [(field.name, field.dataType.simpleString()) for field in fields]
