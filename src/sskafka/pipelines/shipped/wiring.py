"""Connect a pipeline to other topics and locations without changing its file."""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import ConsoleSink, DeltaSink, IcebergSink, JdbcSink, ParquetSink, Sink, TopicSink
from sskafka.pipelines.files.source import Source


class WiringError(Exception):
    """The pipeline has no such table or sink, or would read what it writes."""


def wired(
    pipeline: Pipeline,
    *,
    name: str = "",
    topics: Mapping[str, str] | None = None,
    locations: Mapping[str, str] | None = None,
) -> Pipeline:
    """Return the pipeline with other `topics` by table (separated by commas) and `locations` by sink: paths or topics.

    With another name it is another pipeline, with its own progress, checkpoint and dead letters."""
    topics, locations = topics or {}, locations or {}
    _check("table", topics, [source.name for source in pipeline.sources])
    _check("sink", locations, [sink.name for sink in pipeline.sinks])
    changed = replace(
        pipeline,
        name=name or pipeline.name,
        sources=tuple(_source(source, topics.get(source.name)) for source in pipeline.sources),
        sinks=tuple(_sink(sink, locations.get(sink.name)) for sink in pipeline.sinks),
    )
    for (*_, table), problem in changed.loops():
        raise WiringError(f"{table}: {problem}")
    return changed


def _check(kind: str, names: Mapping[str, str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise WiringError(f"the pipeline has no {kind} {name!r}; it has {', '.join(known)}")


def _source(source: Source, topics: str | None) -> Source:
    return source if topics is None else replace(source, topics=tuple(topics.split(",")), pattern="")


def _sink(sink: Sink, location: str | None) -> Sink:
    if location is None:
        return sink
    match sink:
        case ParquetSink() | DeltaSink():
            return replace(sink, path=location)
        case IcebergSink() | JdbcSink():
            return replace(sink, identifier=location)
        case TopicSink():
            return replace(sink, topic=location)
        case ConsoleSink():
            raise WiringError(f"the sink {sink.name!r} is the console, which has no location")
        case other:
            assert_never(other)
