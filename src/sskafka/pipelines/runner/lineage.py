"""OpenLineage events of a run: what it reads, what it writes, and how it ended.

`lineage: URL` in the pipeline file, or OPENLINEAGE_URL, names a server, which receives events by POST at
/api/v1/lineage; `lineage: file:PATH` appends them to a file, one JSON object per line. A server that is not available
does not affect the run.

The names of datasets follow OpenLineage's naming conventions:

    topic            kafka://host:port (the first bootstrap server)     the topic
    local path       file                                               the absolute path
    s3a://b/key      s3://b                                             key
"""

import json
import os
import re
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self, assert_never

from sskafka.model.version import __version__
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import (
    ConsoleSink,
    DeltaSink,
    IcebergSink,
    JdbcSink,
    ParquetSink,
    Sink,
    TopicSink,
    shown_url,
)
from sskafka.pipelines.files.source import Source
from sskafka.pipelines.files.transform import PythonTransform, SqlTransform
from sskafka.pipelines.runner.errors import failure_text
from sskafka.pipelines.session import Tell

URL_VARIABLE = "OPENLINEAGE_URL"
NAMESPACE_VARIABLE = "OPENLINEAGE_NAMESPACE"
API_KEY_VARIABLE = "OPENLINEAGE_API_KEY"
ENDPOINT = "/api/v1/lineage"
TIMEOUT_S = 5.0
PRODUCER = f"urn:sskafka:pipelines:{__version__}"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = "https://openlineage.io/spec/facets"

Json = dict[str, Any]


class LineageReporter:
    """A context around a run: sends START when it begins, then COMPLETE, ABORT or FAIL."""

    def __init__(self, pipeline: Pipeline, bootstrap: str, run: str, tell: Tell) -> None:
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._run = run
        self._tell = tell
        self._target = pipeline.lineage or os.environ.get(URL_VARIABLE, "")
        self._has_failed = False
        self.is_aborted = False
        """Set by a run that ends without an error before its work is done."""

    def __enter__(self) -> Self:
        self._emit("START")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        match error:
            case None:
                self._emit("ABORT" if self.is_aborted else "COMPLETE")
            case Exception():
                self._emit("FAIL", failure_text(error))
            case _:
                self._emit("ABORT")

    def _emit(self, kind: str, error: str = "") -> None:
        if not self._target or self._has_failed:
            return
        event = run_event(self._pipeline, self._bootstrap, self._run, kind, datetime.now(UTC), error)
        try:
            send(self._target, event)
        except (OSError, ValueError, HTTPException) as failure:
            self._has_failed = True
            reason = str(failure).strip() or type(failure).__name__
            self._tell(self._pipeline.masked(f"lineage events cannot be sent to {self._target}: {reason}"))


def send(target: str, event: Json) -> None:
    """Append the event to a file, or post it; raises OSError, ValueError or HTTPException if that fails."""
    body = json.dumps(event, ensure_ascii=False)
    if target.startswith("file:"):
        path = Path(target.removeprefix("file:").removeprefix("//"))
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{body}\n")
        return
    headers = {"Content-Type": "application/json"}
    if os.environ.get(API_KEY_VARIABLE):
        headers["Authorization"] = f"Bearer {os.environ[API_KEY_VARIABLE]}"
    request = urllib.request.Request(f"{target.rstrip('/')}{ENDPOINT}", body.encode(), headers, method="POST")
    urllib.request.urlopen(request, timeout=TIMEOUT_S).close()


# The event


def run_event(pipeline: Pipeline, bootstrap: str, run: str, kind: str, now: datetime, error: str = "") -> Json:
    """Return the event without secrets."""
    event: Json = _masked(pipeline, _run_event(pipeline, bootstrap, run, kind, now, error))
    return event


def _masked(pipeline: Pipeline, value: Any) -> Any:
    match value:
        case str():
            return pipeline.masked(value)
        case list():
            return [_masked(pipeline, one) for one in value]
        case dict():
            return {name: _masked(pipeline, one) for name, one in value.items()}
        case _:
            return value


def _run_event(pipeline: Pipeline, bootstrap: str, run: str, kind: str, now: datetime, error: str) -> Json:
    facets: Json = {
        "processing_engine": _facet(
            "1-1-1/ProcessingEngineRunFacet.json", name="Spark", version="", openlineageAdapterVersion=__version__
        )
    }
    if error:
        facets["errorMessage"] = _facet("1-0-1/ErrorMessageRunFacet.json", message=error, programmingLanguage="PYTHON")
    return {
        "eventType": kind,
        "eventTime": now.isoformat(),
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "run": {"runId": run_uuid(run), "facets": facets},
        "job": {
            "namespace": os.environ.get(NAMESPACE_VARIABLE, "sskafka"),
            "name": pipeline.name,
            "facets": _job_facets(pipeline),
        },
        "inputs": [one for source in pipeline.sources for one in _inputs(source, _kafka(bootstrap))],
        "outputs": list(_outputs(pipeline, _kafka(bootstrap))),
    }


def run_uuid(run: str) -> str:
    """Return a UUID, which OpenLineage requires; it is always the same for the same run id."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"sskafka:run:{run}"))


def _job_facets(pipeline: Pipeline) -> Json:
    facets = {
        "jobType": _facet(
            "2-0-3/JobTypeJobFacet.json", processingType="STREAMING", integration="SSKAFKA", jobType="PIPELINE"
        )
    }
    if isinstance(pipeline.transform, SqlTransform):
        facets["sql"] = _facet("1-1-0/SQLJobFacet.json", query=pipeline.transform.sql)
    elif isinstance(pipeline.transform, PythonTransform):
        location = f"{pipeline.transform.location}:{pipeline.transform.function}"
        facets["documentation"] = _facet("1-0-1/DocumentationJobFacet.json", description=location)
    return facets


def _facet(schema: str, **fields: Any) -> Json:
    return {"_producer": PRODUCER, "_schemaURL": f"{FACETS}/{schema}", **fields}


def _kafka(bootstrap: str) -> str:
    return f"kafka://{bootstrap.split(',', maxsplit=1)[0].strip()}"


def _inputs(source: Source, namespace: str) -> Iterator[Json]:
    facets = {}
    if source.schema is not None:
        columns = [{"name": column.name, "type": column.type} for column in source.schema.columns]
        facets["schema"] = _facet("1-1-1/SchemaDatasetFacet.json", fields=columns)
    for name in source.topics or (source.pattern,):
        yield {"namespace": namespace, "name": name, "facets": facets}


def _outputs(pipeline: Pipeline, kafka: str) -> Iterator[Json]:
    for sink in pipeline.sinks:
        dataset = _output(pipeline, sink, kafka)
        if dataset is not None:
            yield {**dataset, "facets": {}}
    if pipeline.has_dead_letters:
        yield {"namespace": kafka, "name": pipeline.dead_letter_topic, "facets": {}}


def _output(pipeline: Pipeline, sink: Sink, kafka: str) -> Mapping[str, str] | None:
    match sink:
        case TopicSink():
            return {"namespace": kafka, "name": sink.topic}
        case ParquetSink() | DeltaSink():
            return _location_dataset(pipeline.masked(pipeline.resolved(sink.path)))
        case IcebergSink():
            return {"namespace": f"iceberg://{sink.catalog}", "name": sink.identifier}
        case JdbcSink():
            return {"namespace": _database(pipeline.masked(sink.url)), "name": sink.identifier}
        case ConsoleSink():
            return None
        case other:
            assert_never(other)


def _location_dataset(location: str) -> Mapping[str, str]:
    scheme, has_scheme, rest = _without_login(location).partition("://")
    if not has_scheme:
        return {"namespace": "file", "name": location}
    authority, _, path = rest.partition("/")
    scheme = "s3" if scheme in {"s3a", "s3n"} else scheme
    return {"namespace": f"{scheme}://{authority}", "name": path}


def _database(url: str) -> str:
    """Return the address in a JDBC URL, without the properties at its end."""
    return _without_login(shown_url(url)).removeprefix("jdbc:")


def _without_login(url: str) -> str:
    """Return a URL without `user:password@`, which is not part of the name of a dataset."""
    return re.sub(r"(?<=://)[^/@:]*:[^/]*@", "", url)
