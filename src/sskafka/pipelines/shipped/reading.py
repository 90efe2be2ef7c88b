"""Read the results of runs from files, tables and topics, without Spark.

All Parquet files in a directory are read, so a run must have ended by itself: a killed run may leave files that Spark
has not committed, and only Spark's reader ignores those.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sskafka.pipelines.connector.client_properties import as_options
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import ranges_between
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import DeltaSink, ParquetSink, Sink, TopicSink

S = TypeVar("S", bound=Sink)


def sink_of(pipeline: Pipeline, kind: type[S]) -> S:
    return next(sink for sink in pipeline.sinks if isinstance(sink, kind))


def delta_path(pipeline: Pipeline) -> Path:
    return Path(pipeline.resolved(sink_of(pipeline, DeltaSink).path))


def parquet_rows(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return the rows of the first Parquet sink; none if nothing was written.

    Directories such as day=2026-01-01 are columns."""
    from pyarrow import ArrowInvalid, dataset  # noqa: PLC0415  some hundred milliseconds

    path = pipeline.resolved(sink_of(pipeline, ParquetSink).path)
    try:
        return list(dataset.dataset(path, partitioning="hive").to_table().to_pylist())
    except (FileNotFoundError, ArrowInvalid):
        return []


def delta_rows(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return the rows of the first Delta sink."""
    from deltalake import DeltaTable  # noqa: PLC0415  see above

    return list(DeltaTable(delta_path(pipeline)).to_pyarrow_table().to_pylist())


def topic_rows(pipeline: Pipeline, bootstrap: str) -> list[dict[str, Any]]:
    """Return the rows of the first topic sink: its committed records, each a JSON object."""
    topic = sink_of(pipeline, TopicSink).topic
    return [json.loads(value) for _, value in committed_records(bootstrap, topic, pipeline.kafka) if value is not None]


def committed_records(
    bootstrap: str, topic: str, properties: Mapping[str, str] | None = None
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yield keys and values, partition by partition; `properties` are those of Kafka's clients."""
    wanted = {BOOTSTRAP: bootstrap, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    options = source_options({**as_options(properties or {}), **wanted}, streaming=False)
    with ClusterSession(bootstrap, options.connection) as session:
        planner = Planner(options, session)
        ranges = ranges_between(planner.earliest(planner.partitions()), planner.latest())
    for batch in read_ranges(options, ranges):
        yield from zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
