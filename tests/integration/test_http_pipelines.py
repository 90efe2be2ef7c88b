"""The routes under /api/v1 that show pipelines, from events as a run writes them."""

import time
from collections.abc import Iterator

import pytest
from broker_process import BrokerProcess
from clients import Message, confluent_producer, confluent_send
from http_client import HttpClient, ok
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


def letter(value: bytes, topic: str | None = "clicks", error: str = "no JSON") -> Message:
    origin = {"topic": topic, "partition": "1", "offset": "5", "error": error, "source": "clicks"}
    headers = [(f"dlq.{name}", text.encode()) for name, text in origin.items() if text is not None]
    return Message(value, headers=(("trace", b"1"), *headers))


def test_dead_letters_are_sent_back_once(broker: BrokerProcess, http: HttpClient) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("clicks", partitions=2)
        connection.create_topic("shop-dead-letters")
    producer = confluent_producer(broker.bootstrap)
    letters = [letter(b"%d" % number, error="too old" if number == 4 else "no JSON") for number in range(5)]
    confluent_send(producer, "shop-dead-letters", letters)
    path = "/api/v1/topics/shop-dead-letters/dead-letters"
    found = ok(http.get(f"{path}?limit=2"))
    assert (found["waiting"], found["looked_at"], len(found["letters"])) == (5, 5, 2)
    assert found["reasons"] == [{"error": "no JSON", "letters": 4}, {"error": "too old", "letters": 1}]
    first = found["letters"][0]
    assert (first["topic"], first["partition"], first["offset"], first["source"]) == ("clicks", 1, 5, "clicks")
    assert first["record"]["value"]["data"] == "0"

    plan = ok(http.post(f"{path}/redrive", {"limit": 3}))
    assert plan == {"executed": False, "targets": [{"topic": "clicks", "letters": 3}], "left": 5}
    for sent, left in ((3, 2), (2, 0), (0, 0)):
        done = ok(http.post(f"{path}/redrive", {"limit": 3, "execute": True}))
        assert (sum(target["letters"] for target in done["targets"]), done["left"]) == (sent, left)
    records = ok(http.get("/api/v1/topics/clicks/records?order=oldest"))["records"]
    assert [(one["partition"], one["value"]["data"]) for one in records] == [(1, str(number)) for number in range(5)]
    assert {header["name"] for one in records for header in one["headers"]} == {"trace"}
    assert ok(http.get(path))["waiting"] == 0

    confluent_send(producer, "shop-dead-letters", [letter(b"5"), letter(b"stranger", topic=None)])
    status, answer = http.post(f"{path}/redrive", {"execute": True})
    assert (status, "is not a dead letter" in answer["detail"]) == (409, True)
    assert ok(http.get(path))["waiting"] == 2, "nothing was sent"
    absent = ok(http.get("/api/v1/topics/absent/dead-letters"))
    assert absent == {"waiting": 0, "looked_at": 0, "reasons": [], "letters": []}


def test_markers_of_transactions_are_no_letters(broker: BrokerProcess, http: HttpClient) -> None:
    """Runs write dead letters in transactions, whose markers take offsets, too."""
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("transactional-dead-letters")
    producer = confluent_producer(broker.bootstrap, transactional_id="a-run")
    producer.init_transactions(30)
    for number in range(2):
        producer.begin_transaction()
        message = letter(b"%d" % number)
        producer.produce("transactional-dead-letters", message.value, headers=list(message.headers))
        producer.commit_transaction(30)
    path = "/api/v1/topics/transactional-dead-letters/dead-letters"
    assert ok(http.get(path))["waiting"] == 2
    assert ok(http.post(f"{path}/redrive", {}))["left"] == 2
    assert ok(http.post(f"{path}/redrive", {"execute": True}))["left"] == 0
    assert ok(http.get(path))["waiting"] == 0
