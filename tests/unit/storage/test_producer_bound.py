"""A partition keeps the state of a bounded number of producers."""

import pytest
from logs import NOW_MS, batch, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.log import Log
from sskafka.storage.producers import state as producer_state

BOUND = 50


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(producer_state, "PRODUCERS_MAX", BOUND)
    return reopen(SimulatedDisk())


def send(log: Log, producer_id: int, sequence: int = 0, now_ms: int = NOW_MS, *, transactional: bool = False) -> None:
    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
    log.append_as_leader(batch(b"v", transactional=transactional, **fields), 0, now_ms)


def test_those_silent_for_longest_are_forgotten(log: Log) -> None:
    send(log, 0, transactional=True)
    for producer_id in range(1, 1000):
        send(log, producer_id, now_ms=NOW_MS + producer_id)
        send(log, 1, producer_id if producer_id > 1 else 1, now_ms=NOW_MS + producer_id)
        assert len(log.producers.producers) <= BOUND
    known = set(log.producers.producers)
    assert {0, 1, 999} <= known, "an open transaction, a busy producer and the newest one"
    assert all(producer_id > 900 for producer_id in known - {0, 1})


def test_who_was_forgotten_may_go_on(log: Log) -> None:
    for producer_id in range(100):
        send(log, producer_id, now_ms=NOW_MS + producer_id)
    assert 0 not in log.producers.producers
    send(log, 0, sequence=1, now_ms=NOW_MS + 100)
    assert log.producers.producers[0].last_sequence == 1
