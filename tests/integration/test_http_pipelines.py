"""The routes under /api/v1 that show pipelines, from events as a run writes them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from broker_process import BrokerProcess
from clients import Message, confluent_producer, confluent_send
from http_client import HttpClient
from wire_connection import Connection

from sskafka.model.pipeline_events import EVENTS_TOPIC, Event, EventType

GRAPH = {
    "sources": [{"name": "clicks", "reads": "clicks"}],
    "steps": [{"name": "result", "code": "select * from clicks"}],
    "sinks": [{"name": "counts", "kind": "topic", "reads": "result"}],
}
START = {"file": "shop.yaml", "dead_letters": "", "graph": GRAPH}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("pipelines"), {"http.listener": "127.0.0.1:0"})
    try:
        yield process.start()
    finally:
        process.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def ok(answer: tuple[int, Any]) -> Any:
    status, body = answer
    assert status == 200, body
    return body


def write(broker: BrokerProcess, *events: Event | bytes) -> None:
    values = [event if isinstance(event, bytes) else event.to_json() for event in events]
    confluent_send(confluent_producer(broker.bootstrap), EVENTS_TOPIC, [Message(value) for value in values])


def progress(run: str, time_ms: int, rows: int) -> Event:
    query = {
        "query": "counts",
        "batch": 1,
        "rows_in": rows,
        "rows_out": rows,
        "in_per_s": 2.5,
        "lag": 7,
        "batch_ms": 40,
    }
    dead = {"query": "dead-letters", "rows_in": rows, "rows_out": 3}
    return Event("shop", run, EventType.PROGRESS, time_ms, {"queries": [query, dead]})


def test_pipelines_from_their_events(broker: BrokerProcess, http: HttpClient) -> None:
    assert ok(http.get("/api/v1/pipelines")) == {"pipelines": []}
    assert http.get("/api/v1/pipelines/shop")[0] == 404
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(EVENTS_TOPIC)
    now_ms = int(time.time() * 1000)
    write(
        broker,
        Event("shop", "r1", EventType.STARTED, now_ms - 90_000),
        Event("shop", "r1", EventType.FAILED, now_ms - 80_000, {"error": "boom"}),
        Event(
            "shop", "r2", EventType.STARTED, now_ms - 2_000, {"file": "shop.yaml", "dead_letters": "", "graph": GRAPH}
        ),
        progress("r2", now_ms - 1_000, 10),
    )
    (shown,) = ok(http.get("/api/v1/pipelines"))["pipelines"]
    assert (shown["name"], shown["run"], shown["state"], shown["runs"]) == ("shop", "r2", "running", 2)
    assert (shown["rows_in"], shown["in_per_s"], shown["lag"], shown["dead_letters"]) == (10, 2.5, 7, 3)

    write(broker, progress("r2", now_ms, 20))  # only this one is read for the next answer
    details = ok(http.get("/api/v1/pipelines/shop"))
    assert (details["rows_in"], details["file"], details["dead_letter_topic"]) == (20, "shop.yaml", "")
    assert [sample["time_ms"] for sample in details["samples"]] == [now_ms - 1_000, now_ms]
    assert [(run["run"], run["state"], run["error"]) for run in details["past_runs"]] == [
        ("r2", "running", None),
        ("r1", "failed", "boom"),
    ]
    assert details["graph"]["sinks"] == [{"name": "counts", "text": "topic from result"}]
    assert [query["query"] for query in details["queries"]] == ["counts", "dead-letters"]


def test_records_of_strangers_in_the_topic(broker: BrokerProcess, http: HttpClient) -> None:
    """Records that are no events are left out; odd details are shown as text."""
    start = b'{"pipeline": "odd", "run": "o", "type": "started", "time_ms": 1, "details": %s}'
    write(
        broker,
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"pipeline": 5, "run": "x", "type": "started", "time_ms": 1}',
        b'{"pipeline": "no", "run": "x", "type": "progress", "time_ms": 1, "details": {"queries": [{"lag": "1"}]}}',
        b'{"pipeline": "no", "run": "x", "type": "progress", "time_ms": 1, "details": {"queries": [{"lag": NaN}]}}',
        start
        % b'{"graph": {"sources": "x", "steps": [{"name": ["<b>"]}, 5]}, "file": {"a": 1}, "dead_letters": "\\ud800"}',
    )
    assert "no" not in [one["name"] for one in ok(http.get("/api/v1/pipelines"))["pipelines"]]
    odd = ok(http.get("/api/v1/pipelines/odd"))
    assert odd["graph"] == {"sources": [], "steps": [{"name": "['<b>']", "text": ""}], "sinks": []}
    assert odd["state"] == "lost"
