"""What a run tells about its pipeline when it starts: its file, the graph of its tables, and where dead letters go."""

from typing import Any

from sskafka.pipelines.files.pipeline import NO_TRANSFORM, Pipeline
from sskafka.pipelines.files.transform import PythonTransform, SqlTransform, Transform

CODE_LENGTH_MAX = 4_000
RESULT = "result"
"""The name that the graph gives to what `transform` makes."""


def start_details(pipeline: Pipeline) -> dict[str, Any]:
    """Return the fields of the event of a start, without secrets."""
    return {
        "file": str(pipeline.path),
        "dead_letters": pipeline.dead_letter_topic if pipeline.has_dead_letters else "",
        "graph": graph_of(pipeline),
    }


def graph_of(pipeline: Pipeline) -> dict[str, list[dict[str, str]]]:
    steps = [(step.name, step.transform) for step in pipeline.steps]
    if pipeline.transform != NO_TRANSFORM:
        steps.append((RESULT, pipeline.transform))
    return {
        "sources": [
            {"name": source.name, "reads": source.pattern or ", ".join(source.topics)} for source in pipeline.sources
        ],
        "steps": [{"name": name, "code": pipeline.masked(_code(code))[:CODE_LENGTH_MAX]} for name, code in steps],
        "sinks": [
            {"name": sink.name, "kind": type(sink).__name__.removesuffix("Sink").lower(), "reads": sink.table or RESULT}
            for sink in pipeline.sinks
        ],
    }


def _code(transform: Transform) -> str:
    match transform:
        case SqlTransform():
            return transform.sql
        case PythonTransform():
            return f"{transform.location}:{transform.function}"
