"""Runs, reconstructed from their events. Pure: takes events and the time, returns runs."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sskafka.pipelines.files.pipeline import DEAD_LETTERS
from sskafka.pipelines.runner.events import Event, EventType

SILENT_AFTER_MS = 20_000
"""A run writes an event every few seconds. One that is silent for this long has died."""


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

    @property
    def rows_in(self) -> int:
        """Each query reads the topics itself; this is the count of the query that has read most."""
        return max((query.get("rows_in", 0) for query in self.queries), default=0)

    @property
    def rows_out(self) -> int:
        return max((query.get("rows_out", 0) for query in self.queries if not _is_dead_letters(query)), default=0)

    @property
    def dead_letters(self) -> int:
        return sum(query.get("rows_out", 0) for query in self.queries if _is_dead_letters(query))


def _is_dead_letters(query: dict[str, Any]) -> bool:
    return bool(query.get("query") == DEAD_LETTERS)


def runs_of(events: Iterable[Event], now_ms: float) -> list[RunView]:
    """Return the runs in the order of their start, oldest first."""
    runs: dict[str, RunView] = {}
    for event in events:
        first = RunView(event.pipeline, event.run, RunState.STARTING, event.time_ms, event.time_ms)
        runs[event.run] = _with(runs.get(event.run, first), event)
    return [_as_of(run, now_ms) for run in runs.values()]


def newest_runs(runs: Iterable[RunView]) -> dict[str, RunView]:
    """Return the newest run of each pipeline."""
    return {run.pipeline: run for run in runs}


def _with(run: RunView, event: Event) -> RunView:
    match event.type:
        case EventType.STARTED:
            return run
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


def _as_of(run: RunView, now_ms: float) -> RunView:
    is_silent = run.state not in OVER and now_ms - run.last_event_ms > SILENT_AFTER_MS
    return replace(run, state=RunState.LOST) if is_silent else run
