"""One run of a pipeline, from the checks before Spark starts to a clean end.

    check ─> topics ─> Spark ─> queries ─> [ progress, events, stop requests ] ─> stop ─> last event

A run ends when its queries do (trigger available-now), when one of them fails, when this process gets SIGINT or
SIGTERM, or when somebody asked for it in the topic of events. Stopping waits for the micro-batches under way, so that
the checkpoint ends between batches.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sskafka.client.admin import NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.pipelines.connector.options import BOOTSTRAP, source_options
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.files.model import Pipeline, Source
from sskafka.pipelines.runner.errors import PipelineRunError, explained
from sskafka.pipelines.runner.events import ENDED, Event, EventLog, EventType, create_topics
from sskafka.pipelines.runner.finishing import finish
from sskafka.pipelines.runner.progress import QueryProgress, QueryTotals
from sskafka.pipelines.runner.recovery import recover_topics, topic_sinks
from sskafka.pipelines.session import SessionSettings, Tell, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.5
EVENT_EVERY_S = 2.0
BATCH_END_WAIT_S = 30.0

OnProgress = Callable[[list[QueryProgress]], None]


@dataclass(frozen=True, slots=True)
class RunSettings:
    bootstrap: str
    master: str = ""
    conf: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunResult:
    run: str
    queries: list[QueryProgress]

    @property
    def rows_in(self) -> int:
        """Each query reads the topics for itself: what the one that came farthest has read."""
        return max((query.rows_in for query in self.queries), default=0)

    @property
    def unmet(self) -> dict[str, int]:
        """Rows that did not meet an expectation; each query has counted for itself."""
        counts: dict[str, int] = {}
        for query in self.queries:
            for name, count in query.unmet.items():
                counts[name] = max(count, counts.get(name, 0))
        return {name: count for name, count in counts.items() if count}


def run_pipeline(
    pipeline: Pipeline,
    settings: RunSettings,
    *,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = lambda _: None,
    stop: threading.Event | None = None,
) -> RunResult:
    """Runs until the pipeline ends; PipelineRunError says why it ended badly."""
    with ClusterSession(settings.bootstrap, ConnectionConfig(client_id="sskafka-pipeline")) as cluster:
        tell(f"connected to {settings.bootstrap}")
        prepare_topics(cluster, pipeline, settings.bootstrap)
        session = SessionSettings(f"sskafka {pipeline.name}", settings.master, {**pipeline.spark, **settings.conf})
        run_id = uuid.uuid4().hex[:12]
        recover_topics(cluster, pipeline, settings.bootstrap, run_id)
        spark = start_session(session, tell)
        result = _Run(pipeline, settings, cluster, spark, run_id, stop or threading.Event()).go(tell, on_progress)
    told = finish(pipeline)
    if told:
        tell(told)
    return result


def prepare_topics(cluster: ClusterSession, pipeline: Pipeline, bootstrap: str) -> None:
    """Refuses a source topic that is not there; makes those that the pipeline writes."""
    for source in pipeline.sources:
        Planner(planning_options(source, bootstrap), cluster).partitions()
    create_topics(cluster, [NewTopic(sink.topic, sink.partitions) for sink in topic_sinks(pipeline)])
    EventLog(cluster, bootstrap).create()


def planning_options(source: Source, bootstrap: str) -> Any:
    subscription = {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}
    return source_options({BOOTSTRAP: bootstrap, **subscription, **source.options}, streaming=True)


class _Run:
    def __init__(
        self,
        pipeline: Pipeline,
        settings: RunSettings,
        cluster: ClusterSession,
        spark: "SparkSession",
        run_id: str,
        stop: threading.Event,
    ) -> None:
        self._pipeline = pipeline
        self._bootstrap = settings.bootstrap
        self._spark = spark
        self._stop = stop
        self._events = EventLog(cluster, settings.bootstrap)
        self._seen = self._events.end()
        self.run_id = run_id
        self._totals: dict[str, QueryTotals] = {}

    def go(self, tell: Tell, on_progress: OnProgress) -> RunResult:
        from sskafka.pipelines.runner.queries import start_queries  # noqa: PLC0415  Spark is there now

        self._tell_event(EventType.STARTED, file=str(self._pipeline.path))
        if self._stop.is_set():  # while Spark started
            return self._finish([], on_progress)
        tell("starting the queries")
        try:
            queries = start_queries(self._spark, self._pipeline, self._bootstrap)
        except Exception as error:
            self._tell_event(EventType.FAILED, error=explained(error))
            raise PipelineRunError(explained(error)) from error
        tell(f"running {len(queries)} queries: {', '.join(self._name(query) for query in queries)}")
        try:
            self._watch(queries, on_progress)
        finally:
            stop_queries(queries)
        return self._finish(queries, on_progress)

    def _watch(self, queries: "list[StreamingQuery]", on_progress: OnProgress) -> None:
        told_at = 0.0
        while any(query.isActive for query in queries) and not self._stop.is_set():
            if any(query.exception() is not None for query in queries):
                return
            if time.monotonic() - told_at >= EVENT_EVERY_S:
                told_at = time.monotonic()
                on_progress(self._progress(queries))
                self._tell_progress()
                if self._is_asked_to_stop():
                    return
            self._stop.wait(POLL_S)

    def _finish(self, queries: "list[StreamingQuery]", on_progress: OnProgress) -> RunResult:
        progress = self._progress(queries)
        on_progress(progress)
        self._tell_progress()
        for query in queries:
            failure = query.exception()
            if failure is not None:
                self._tell_event(EventType.FAILED, query=self._name(query), error=explained(failure))
                raise PipelineRunError(f"{self._name(query)}: {explained(failure)}") from failure
        self._tell_event(EventType.STOPPED)
        return RunResult(self.run_id, progress)

    def _name(self, query: "StreamingQuery") -> str:
        return (query.name or "").removeprefix(f"{self._pipeline.name}.")

    def _progress(self, queries: "list[StreamingQuery]") -> list[QueryProgress]:
        for query in queries:
            totals = self._totals.setdefault(self._name(query), QueryTotals(self._name(query)))
            for report in query.recentProgress:
                totals.add(json.loads(report.json))
        return [totals.progress for totals in self._totals.values()]

    # Events

    def _tell_event(self, kind: EventType, **details: Any) -> None:
        self._events.append(Event(self._pipeline.name, self.run_id, kind, int(time.time() * 1000), details))

    def _tell_progress(self) -> None:
        self._tell_event(EventType.PROGRESS, queries=[asdict(totals.progress) for totals in self._totals.values()])

    def _is_asked_to_stop(self) -> bool:
        """Looks through the events since the last look."""
        begin, self._seen = self._seen, self._events.end()
        return any(
            event.type is EventType.STOP_REQUESTED and event.run == self.run_id for event in self._events.since(begin)
        )


def stop_queries(queries: "list[StreamingQuery]") -> None:
    """Stops each between two micro-batches; one that never pauses is stopped after a while all the same."""
    deadline = time.monotonic() + BATCH_END_WAIT_S
    for query in queries:
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(0.05)
        query.stop()


def running(events: EventLog, pipeline: str | None = None) -> dict[str, list[Event]]:
    """The events of the newest run of each pipeline, or of one."""
    runs: dict[str, list[Event]] = {}
    for event in events.latest():
        if pipeline is not None and event.pipeline != pipeline:
            continue
        known = runs.get(event.pipeline)
        if known is None or known[0].run != event.run:
            runs[event.pipeline] = [event]
        else:
            known.append(event)
    return runs


def has_ended(events: list[Event]) -> bool:
    return any(event.type in ENDED for event in events)
