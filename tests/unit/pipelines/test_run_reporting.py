"""What a run tells the cluster and hears from it, with a broker and without Spark."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sskafka import Broker
from sskafka.client.config import ConnectionConfig
from sskafka.model.pipeline_events import Event, EventType
from sskafka.model.pipeline_runs import RunState, RunView, runs_of
from sskafka.pipelines.connector.errors import ReadTimeoutError
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.transform import SqlTransform
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.events import EventLog
from sskafka.pipelines.runner.progress import QueryProgress
from sskafka.pipelines.runner.reporting import RunReporter

PIPELINE = Pipeline("orders", (), (), SqlTransform(""), path=Path("orders.yaml"))
WAIT_S = 20


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.fixture
def log(broker: Broker) -> Iterator[EventLog]:
    with ClusterSession(broker.bootstrap_servers, ConnectionConfig()) as session:
        made = EventLog(session, broker.bootstrap_servers)
        made.create()
        yield made


def reporter(broker: Broker, run: str, stop: threading.Event, told: list[str] | None = None) -> RunReporter:
    tell = (told if told is not None else []).append
    return RunReporter(PIPELINE, broker.bootstrap_servers, run, stop, tell)


def run_of(log: EventLog, run: str) -> RunView:
    return next(one for one in runs_of(log.everything(), time.time() * 1000) if one.run == run)


def test_a_run_is_seen_from_its_beginning_to_its_end(broker: Broker, log: EventLog) -> None:
    with reporter(broker, "r1", threading.Event()) as told:
        assert run_of(log, "r1").state is RunState.STARTING
        told.progress([QueryProgress("parquet", 3, rows_in=7, rows_out=5)])
    done = run_of(log, "r1")
    assert (done.state, done.rows_in, done.rows_out) == (RunState.DONE, 7, 5)


def test_what_went_wrong_is_kept(broker: Broker, log: EventLog) -> None:
    with pytest.raises(PipelineRunError), reporter(broker, "r2", threading.Event()):
        raise PipelineRunError("the disk is full")
    failed = run_of(log, "r2")
    assert (failed.state, failed.error) == (RunState.FAILED, "the disk is full")


def test_a_stop_is_heard(broker: Broker, log: EventLog) -> None:
    stop = threading.Event()
    with reporter(broker, "r3", stop):
        log.append(Event("orders", "another", EventType.STOP_REQUESTED, 0))
        log.append(Event("orders", "r3", EventType.STOP_REQUESTED, 0))
        assert stop.wait(WAIT_S)
    assert run_of(log, "r3").state is RunState.STOPPED


def test_a_newer_run_takes_over(broker: Broker, log: EventLog) -> None:
    stop = threading.Event()
    with reporter(broker, "r4", stop) as older:
        log.append(Event("of another pipeline", "r5", EventType.STARTED, 0))
        with reporter(broker, "r6", threading.Event()):
            assert stop.wait(WAIT_S)
        assert older.taken_over_by == "r6"


def test_a_cluster_that_is_gone_holds_up_nobody() -> None:
    stop, told = threading.Event(), list[str]()
    with Broker() as broker:
        report = reporter(broker, "r7", stop, told)
        with ClusterSession(broker.bootstrap_servers, ConnectionConfig()) as session:
            EventLog(session, broker.bootstrap_servers).create()
        report.__enter__()
    began = time.monotonic()
    report.progress([QueryProgress("parquet")])
    assert time.monotonic() - began < 1
    report.__exit__(None, None, None)
    assert time.monotonic() - began < WAIT_S


def test_events_that_cannot_be_read_once_are_listened_to_again(
    broker: Broker, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[int] = []
    since = EventLog.since

    def failing_once(of: EventLog, offset: int) -> Iterator[Event]:
        if not failures:
            failures.append(offset)
            raise ReadTimeoutError("no records came")
        return since(of, offset)

    monkeypatch.setattr(EventLog, "since", failing_once)
    stop = threading.Event()
    with reporter(broker, "r-read", stop):
        log.append(Event("orders", "r-read", EventType.STOP_REQUESTED, int(time.time() * 1000)))
        assert stop.wait(WAIT_S)
    assert failures
