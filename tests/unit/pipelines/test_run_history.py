"""Runs, from their events."""

import pytest

from sskafka.model.pipeline_events import Event, EventType
from sskafka.model.pipeline_runs import RunState, newest_runs, runs_of

STARTED = Event("p", "r", EventType.STARTED, 100_000)


@pytest.mark.parametrize(
    ("events", "age_ms", "state"),
    [
        ([], 1_000, RunState.STARTING),
        ([], 60_000, RunState.LOST),
        ([(EventType.PROGRESS, {"queries": []})], 1_000, RunState.STARTING),
        ([(EventType.PROGRESS, {"queries": [{"query": "a"}]})], 1_000, RunState.RUNNING),
        ([(EventType.PROGRESS, {"queries": [{"query": "a"}]})], 60_000, RunState.LOST),
        ([(EventType.STOP_REQUESTED, {})], 1_000, RunState.STOPPING),
        ([(EventType.STOP_REQUESTED, {}), (EventType.STOPPED, {})], 60_000, RunState.STOPPED),
        ([(EventType.STOPPED, {"is_done": True})], 60_000, RunState.DONE),
        ([(EventType.STOPPED, {}), (EventType.STOP_REQUESTED, {})], 60_000, RunState.STOPPED),
        ([(EventType.FAILED, {"error": "boom"})], 60_000, RunState.FAILED),
    ],
)
def test_the_state_of_a_run(events: list[tuple[EventType, dict[str, object]]], age_ms: int, state: RunState) -> None:
    told = [STARTED, *(Event("p", "r", kind, 100_000, details) for kind, details in events)]
    (run,) = runs_of(told, 100_000 + age_ms)
    assert run.state is state


def test_rows_and_dead_letters_are_those_of_the_last_progress() -> None:
    queries = [{"query": "a", "rows_in": 5, "rows_out": 4}, {"query": "dead-letters", "rows_in": 5, "rows_out": 1}]
    events = [STARTED, Event("p", "r", EventType.PROGRESS, 101_000, {"queries": queries})]
    (run,) = runs_of([*events, Event("p", "r", EventType.FAILED, 103_000, {"error": "boom"})], 200_000)
    assert (run.rows_in, run.rows_out, run.dead_letters, run.error) == (5, 4, 1, "boom")
    assert run.last_event_ms - run.started_ms == 3_000


def test_the_newest_run_of_each_pipeline() -> None:
    events = [STARTED, Event("q", "r2", EventType.STARTED, 1), Event("p", "r3", EventType.STARTED, 2)]
    assert {name: run.run for name, run in newest_runs(runs_of(events, 3)).items()} == {"p": "r3", "q": "r2"}


def test_what_others_wrote_to_the_topic_is_passed_over() -> None:
    assert Event.maybe_from_json(STARTED.to_json()) == STARTED
    for foreign in (None, b"", b"[]", b"hello", b'{"type": "renamed"}', b'{"type": "started"}'):
        assert Event.maybe_from_json(foreign) is None
