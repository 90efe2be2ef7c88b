"""Runs, reconstructed from their events. Pure: takes events and the time, returns runs."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sskafka.model.pipeline_events import DEAD_LETTERS_QUERY, Event, EventType

SILENT_AFTER_MS = 20_000
"""A run writes an event every few seconds. One that is silent for this long has died."""


RUNS_MAX = 10_000
SAMPLES_MAX = 720
"""An hour of a run that writes an event every five seconds."""


class RunState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"


OVER = frozenset({RunState.STOPPED, RunState.DONE, RunState.FAILED, RunState.LOST})


@dataclass(frozen=True, slots=True)
class RunView:
    """One run, as its events describe it."""

    pipeline: str
    run: str
    state: RunState
    started_ms: int
    last_event_ms: int
    """Time of the last event; for a run that has ended, its end."""
    error: str = ""
    queries: tuple[dict[str, Any], ...] = field(default=())
    """The fields of each query's progress."""
    start: dict[str, Any] = field(default_factory=dict)
    """The fields of the start event: the pipeline's file, its graph and the topic of its dead letters."""

    @property
    def rows_in(self) -> int:
        """Each query reads the topics on its own; this is the count of the query that has read most."""
        return max((query.get("rows_in", 0) for query in self.queries), default=0)

    @property
    def rows_out(self) -> int:
        return max((query.get("rows_out", 0) for query in self.queries if not _is_dead_letters(query)), default=0)

    @property
    def dead_letters(self) -> int:
        return sum(query.get("rows_out", 0) for query in self.queries if _is_dead_letters(query))


def _is_dead_letters(query: dict[str, Any]) -> bool:
    return bool(query.get("query") == DEAD_LETTERS_QUERY)


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """The progress of a run at one moment, over all its queries."""

    time_ms: int
    in_per_s: float
    out_per_s: float
    lag: int
    state_rows: int
    batch_ms: int
    """Duration of the longest of the last micro-batches."""


class RunHistory:
    """Runs and, for the newest run of each pipeline, its progress over time. Events are added in their order."""

    def __init__(self) -> None:
        self._runs: dict[str, RunView] = {}
        self._samples: dict[str, tuple[str, deque[ProgressSample]]] = {}

    def add(self, event: Event) -> None:
        first = RunView(event.pipeline, event.run, RunState.STARTING, event.time_ms, event.time_ms)
        self._runs[event.run] = _with(self._runs.get(event.run, first), event)
        if len(self._runs) > RUNS_MAX:
            del self._runs[next(iter(self._runs))]
        if event.type is EventType.STARTED:
            self._samples[event.pipeline] = (event.run, deque(maxlen=SAMPLES_MAX))
        elif event.type is EventType.PROGRESS and event.details.get("queries"):
            run, samples = self._samples.setdefault(event.pipeline, (event.run, deque(maxlen=SAMPLES_MAX)))
            if run == event.run:
                samples.append(_sample(event))

    def runs(self, now_ms: float) -> list[RunView]:
        """Return the runs in the order of their start, oldest first."""
        return [_as_of(run, now_ms) for run in self._runs.values()]

    def samples(self, pipeline: str) -> list[ProgressSample]:
        """Return the progress of the newest run, oldest first."""
        return list(self._samples[pipeline][1]) if pipeline in self._samples else []


def runs_of(events: Iterable[Event], now_ms: float) -> list[RunView]:
    """Return the runs in the order of their start, oldest first."""
    history = RunHistory()
    for event in events:
        history.add(event)
    return history.runs(now_ms)


def newest_runs(runs: Iterable[RunView]) -> dict[str, RunView]:
    """Return the newest run of each pipeline."""
    return {run.pipeline: run for run in runs}


def _with(run: RunView, event: Event) -> RunView:
    match event.type:
        case EventType.STARTED:
            return replace(run, start=event.details)
        case EventType.PROGRESS:
            queries = tuple(event.details.get("queries", ()))
            state = RunState.RUNNING if queries and run.state is RunState.STARTING else run.state
            return replace(run, state=state, queries=queries or run.queries, last_event_ms=event.time_ms)
        case EventType.STOP_REQUESTED:
            return run if run.state in OVER else replace(run, state=RunState.STOPPING)
        case EventType.STOPPED:
            state = RunState.DONE if event.details.get("is_done") else RunState.STOPPED
            return replace(run, state=state, last_event_ms=event.time_ms)
        case EventType.FAILED:
            return replace(
                run, state=RunState.FAILED, error=event.details.get("error", ""), last_event_ms=event.time_ms
            )


def _sample(event: Event) -> ProgressSample:
    """Rows in and lag are those of the query that reads most: each query reads the topics on its own."""
    queries = event.details["queries"]
    written = [query for query in queries if not _is_dead_letters(query)]
    return ProgressSample(
        event.time_ms,
        max((query.get("in_per_s", 0) for query in queries), default=0),
        max((query.get("out_per_s", 0) for query in written), default=0),
        max((query.get("lag", 0) for query in queries), default=0),
        sum(query.get("state_rows", 0) for query in queries),
        max((query.get("batch_ms", 0) for query in queries), default=0),
    )


def _as_of(run: RunView, now_ms: float) -> RunView:
    is_silent = run.state not in OVER and now_ms - run.last_event_ms > SILENT_AFTER_MS
    return replace(run, state=RunState.LOST) if is_silent else run
