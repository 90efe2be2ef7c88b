"""A thread with its own connection that reports a run to the cluster, and receives requests to stop.

    run ── progress ──> [ newest ] ── thread ──> topic of events
    run <── stop, superseded ──────── thread <── topic of events

The thread also writes events while Spark starts and during long batches. If the cluster does not respond, the thread
waits, but the run does not: Spark's queries notice by themselves whether they can continue.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from sskafka.model.pipeline_events import Event, EventType
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import NO_TRANSFORM, Pipeline
from sskafka.pipelines.files.transform import PythonTransform, SqlTransform, Transform
from sskafka.pipelines.runner.errors import failure_text
from sskafka.pipelines.runner.events import EventLog
from sskafka.pipelines.runner.progress import QueryProgress
from sskafka.pipelines.session import Tell

LOOK_EVERY_S = 1.0
HEARTBEAT_S = 5.0
LAST_EVENT_TIMEOUT_S = 10.0
CODE_LENGTH_MAX = 4_000
RESULT = "result"
"""Name of the table that `transform` makes, in the graph."""


class RunReporter:
    """A context around a run. `stop` is set when a stop was requested."""

    def __init__(self, pipeline: Pipeline, bootstrap: str, run: str, stop: threading.Event, tell: Tell) -> None:
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._run = run
        self._stop = stop
        self._tell = tell
        self._newest: list[dict[str, Any]] = []
        self._written: list[dict[str, Any]] = []
        self._written_at = 0.0
        self._read_up_to = 0
        self._last: Event | None = None
        self._is_over = threading.Event()
        self._failure = ""
        self._thread = threading.Thread(target=self._work, name="pipeline-events", daemon=True)
        self._has_read_own_start = False
        self.taken_over_by = ""

    def __enter__(self) -> Self:
        with self._connected() as session:
            log = EventLog(session, self._bootstrap)
            self._read_up_to = log.end()
            log.append(self._event(EventType.STARTED, **start_details(self._pipeline)))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        match error:
            case None:
                self._last = self._event(EventType.STOPPED, is_done=not self._stop.is_set())
            case Exception():
                self._last = self._event(EventType.FAILED, error=self._pipeline.masked(failure_text(error)))
            case _:
                self._last = self._event(EventType.STOPPED, is_done=False)
        self._is_over.set()
        self._thread.join(LAST_EVENT_TIMEOUT_S)

    def progress(self, queries: Sequence[QueryProgress]) -> None:
        """Publish progress; the thread writes it if it has changed."""
        self._newest = [asdict(query) for query in queries]

    def _event(self, kind: EventType, **details: Any) -> Event:
        return Event(self._pipeline.name, self._run, kind, int(time.time() * 1000), details)

    def _connected(self) -> ClusterSession:
        return ClusterSession(self._bootstrap, self._pipeline.connection)

    # The thread

    def _work(self) -> None:
        is_over = False
        while not is_over:
            try:
                with self._connected() as session:
                    self._report(EventLog(session, self._bootstrap))
                is_over = True
            except Exception as error:  # any error: without this thread nobody can stop the run or take over
                self._tell_failure(error)
                is_over = self._is_over.wait(LOOK_EVERY_S)

    def _report(self, log: EventLog) -> None:
        while not self._is_over.wait(LOOK_EVERY_S):
            self._write_progress(log)
            self._read_requests(log)
            self._failure = ""
        self._write_progress(log)
        assert self._last is not None
        log.append(self._last)

    def _write_progress(self, log: EventLog) -> None:
        newest = self._newest
        if newest != self._written or time.monotonic() - self._written_at >= HEARTBEAT_S:
            log.append(self._event(EventType.PROGRESS, queries=newest))
            self._written, self._written_at = newest, time.monotonic()

    def _read_requests(self, log: EventLog) -> None:
        end = log.end()
        for event in log.since(self._read_up_to):
            if event.pipeline == self._pipeline.name:
                self._handle(event)
        self._read_up_to = end

    def _handle(self, event: Event) -> None:
        """Handle an event. If two runs start at the same time, the one whose start event is later continues."""
        if event.type is EventType.STOP_REQUESTED and event.run == self._run:
            self._stop.set()
        elif event.type is EventType.STARTED and event.run == self._run:
            self._has_read_own_start = True
        elif event.type is EventType.STARTED and self._has_read_own_start:
            self.taken_over_by = event.run
            self._stop.set()

    def _tell_failure(self, error: Exception) -> None:
        """Report an error once, until publishing works again."""
        if not self._failure:
            self._tell(f"events cannot be written, so `status` and `stop` do not work: {error}")
        self._failure = str(error)


def start_details(pipeline: Pipeline) -> dict[str, Any]:
    """Return the fields of the start event: the file, the topic of dead letters and the graph, without secrets."""
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
