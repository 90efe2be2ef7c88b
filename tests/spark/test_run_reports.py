"""What a run hears from the topic of events, on real brokers and without Spark."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import wait_until

from sskafka.model.pipeline_events import Event, EventType
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.events import EventLog
from sskafka.pipelines.runner.reporting import RunReporter

FILE = """\
name: {name}
sources:
  numbers: {{topic: numbers, format: text}}
sinks:
  - console: {{}}
"""


def test_of_two_runs_that_start_at_once_the_later_one_goes_on(
    session: ClusterSession,
    bootstrap: str,
    new_topic: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = new_topic()
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(name=name))
    events = EventLog(session, bootstrap)
    events.create()
    look, others = EventLog.end, ["older"]

    def look_just_before_another_starts(log: EventLog) -> int:
        end = look(log)
        if others:
            log.append(Event(name, others.pop(), EventType.STARTED, 0))
        return end

    monkeypatch.setattr(EventLog, "end", look_just_before_another_starts)
    stop = threading.Event()
    reporter = RunReporter(load_pipeline(file), bootstrap, "later", stop, lambda _: None)
    with reporter:
        wait_until(lambda: reporter._has_read_own_start, "the run has heard of itself")
        assert not stop.is_set()
        events.append(Event(name, "newest", EventType.STARTED, 0))
        wait_until(stop.is_set, "the run is to stop")
    assert reporter.taken_over_by == "newest"
