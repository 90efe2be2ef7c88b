"""When the outcome of a batch is recorded: at once, or while the process waits for the next batch."""

import threading

import pytest

from sskafka.pipelines.connector.sink import REUSED, OutcomeRecorder


def test_a_process_that_ends_after_its_commit_records_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REUSED, raising=False)
    done: list[str] = []
    OutcomeRecorder().start(lambda: done.append(threading.current_thread().name))
    assert done == [threading.current_thread().name]


def test_a_process_that_lives_on_records_in_a_thread_that_the_next_commit_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(REUSED, "1")
    recorder, released, done = OutcomeRecorder(), threading.Event(), list[int]()

    def work() -> None:
        released.wait(10)
        done.append(len(done))

    for count in range(3):
        recorder.wait()
        assert len(done) == count
        released.clear()
        recorder.start(work)
        assert len(done) == count
        released.set()
    recorder.wait()
    assert len(done) == 3
    recorder.wait()
