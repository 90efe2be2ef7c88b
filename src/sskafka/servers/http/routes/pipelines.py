"""Pipelines with their runs, from the events that runs publish, wherever they run."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.model.pipeline_events import NUMBERS
from sskafka.model.pipeline_runs import OVER, RunHistory, RunView, newest_runs
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.pipeline_history import PipelineHistories
from sskafka.servers.http.problems import NOT_FOUND, Problem, documented
from sskafka.servers.http.routes.paging import Name

RUNS_SHOWN_MAX = 50
TEXT_MAX = 4_000
NODES_MAX = 100


class Run(BaseModel):
    run: str
    state: Annotated[str, Field(description="starting, running, stopping, stopped, done, failed or lost")]
    started_ms: int
    last_event_ms: Annotated[int, Field(description="For a run that has ended, its end.")]
    rows_in: int
    rows_out: int
    dead_letters: int
    error: str | None


class Pipeline(Run):
    name: str
    is_running: bool
    in_per_s: Annotated[float, Field(description="Since the previous micro-batch; 0 for a run that has ended.")]
    out_per_s: float
    lag: Annotated[int, Field(description="Records of its topics that it has not read.")]
    runs: Annotated[int, Field(description="Runs that are known.")]


class Pipelines(BaseModel):
    pipelines: Annotated[list[Pipeline], Field(description="The newest run of each pipeline, by name.")]


class Query(BaseModel):
    query: str
    batch: int
    rows_in: int
    rows_out: int
    in_per_s: float
    out_per_s: float
    lag: int
    state_rows: int
    batch_ms: int
    watermark: str | None
    reads: Annotated[str, Field(description="Topics and offsets of the last micro-batch.")]


class Sample(BaseModel):
    time_ms: int
    in_per_s: float
    out_per_s: float
    lag: int
    state_rows: int
    batch_ms: int


class GraphNode(BaseModel):
    name: str
    text: Annotated[str, Field(description="Topics of a source, code of a step, kind of a sink and what it reads.")]


class Graph(BaseModel):
    sources: list[GraphNode]
    steps: list[GraphNode]
    sinks: list[GraphNode]


class PipelineDetails(Pipeline):
    file: str
    dead_letter_topic: Annotated[str, Field(description="Empty: the pipeline has none.")]
    graph: Graph
    queries: list[Query]
    samples: Annotated[list[Sample], Field(description="Progress of the newest run, oldest first.")]
    past_runs: Annotated[list[Run], Field(description=f"Newest first, at most {RUNS_SHOWN_MAX}.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1/pipelines", tags=["pipelines"])
    histories = PipelineHistories()

    async def history_for(request: Request) -> RunHistory:
        async with context.clients(request) as clients, clients.reader.borrowed() as cluster:
            return await histories.of(context.client_of(request)).refresh(cluster)

    @router.get("", summary="Pipelines, from the events that their runs publish")
    async def pipelines(request: Request) -> Pipelines:
        runs = (await history_for(request)).runs(context.clock.now_ms())
        newest = newest_runs(runs)
        counts = {name: sum(run.pipeline == name for run in runs) for name in newest}
        return Pipelines(pipelines=[Pipeline(**_summary(newest[name], counts[name])) for name in sorted(newest)])

    @router.get(
        "/{name}",
        summary="A pipeline: its queries, its graph, progress over time and past runs",
        responses=documented({NOT_FOUND: "No such pipeline has published an event."}),
    )
    async def pipeline(name: Name, request: Request) -> PipelineDetails:
        history = await history_for(request)
        runs = [run for run in history.runs(context.clock.now_ms()) if run.pipeline == name]
        if not runs:
            raise Problem(NOT_FOUND, f"no pipeline {name!r} has run on this cluster; `sskafka pipeline run` runs one")
        newest = runs[-1]
        return PipelineDetails(
            **_summary(newest, len(runs)),
            file=_text(newest.start.get("file", "")),
            dead_letter_topic=dead_letter_topic(newest),
            graph=_graph(newest.start.get("graph")),
            queries=[_query(query) for query in newest.queries],
            samples=[
                Sample(**{field: getattr(one, field) for field in Sample.model_fields}) for one in history.samples(name)
            ],
            past_runs=[Run(**_run(run)) for run in reversed(runs[-RUNS_SHOWN_MAX:])],
        )

    return router


def dead_letter_topic(run: RunView) -> str:
    """Return the topic that the run has named. Runs of older versions have named none: theirs is the default one."""
    return _text(run.start.get("dead_letters", f"{run.pipeline}-dead-letters"))


def _run(run: RunView) -> dict[str, Any]:
    return {
        "run": run.run,
        "state": str(run.state),
        "started_ms": run.started_ms,
        "last_event_ms": run.last_event_ms,
        "rows_in": int(run.rows_in),
        "rows_out": int(run.rows_out),
        "dead_letters": int(run.dead_letters),
        "error": _text(run.error) or None,
    }


def _summary(run: RunView, runs: int) -> dict[str, Any]:
    is_running = run.state not in OVER
    queries = run.queries if is_running else ()
    return {
        **_run(run),
        "name": run.pipeline,
        "is_running": is_running,
        "in_per_s": max((query.get("in_per_s", 0) for query in queries), default=0),
        "out_per_s": max((query.get("out_per_s", 0) for query in queries), default=0),
        "lag": int(max((query.get("lag", 0) for query in run.queries), default=0)),
        "runs": runs,
    }


def _query(query: dict[str, Any]) -> Query:
    rates = {name: float(query.get(name, 0)) for name in NUMBERS if name.endswith("_per_s")}
    counts = {name: int(query.get(name, 0)) for name in NUMBERS if name not in rates}
    return Query(
        query=_text(query.get("query", "")),
        watermark=_text(query.get("watermark", "")) or None,
        reads=_text(query.get("reads", "")),
        in_per_s=rates["in_per_s"],
        out_per_s=rates["out_per_s"],
        **counts,
    )


def _graph(graph: Any) -> Graph:
    """Return the graph in a run's start event, as far as it has the expected form."""
    return Graph(
        sources=_nodes(graph, "sources", lambda node: node.get("reads", "")),
        steps=_nodes(graph, "steps", lambda node: node.get("code", "")),
        sinks=_nodes(graph, "sinks", lambda node: f"{node.get('kind', '')} from {node.get('reads', '')}"),
    )


def _nodes(graph: Any, part: str, text_of: Any) -> list[GraphNode]:
    nodes = graph.get(part) if isinstance(graph, dict) else None
    if not isinstance(nodes, list):
        return []
    valid = [node for node in nodes[:NODES_MAX] if isinstance(node, dict)]
    return [GraphNode(name=_text(node.get("name", "")), text=_text(text_of(node))) for node in valid]


def _text(value: object) -> str:
    return str(value)[:TEXT_MAX].encode(errors="backslashreplace").decode()
