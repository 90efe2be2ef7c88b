"""OpenLineage events: what they say of a pipeline, where they go, and that a server that is away disturbs nothing."""

import json
import socket
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.variables import FileOptions
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.lineage import LineageReporter, run_event

TEXT = """\
name: shop
sources:
  orders: {topics: [orders, orders-eu], schema: "id long not null, user string"}
transform: {sql: select id from orders}
sinks:
  - parquet: {path: lake/orders}
  - delta: {path: "s3a://bucket/tables/orders"}
  - topic: {topic: ids}
  - console: {}
"""
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return load(tmp_path)


def load(tmp_path: Path, more: str = "") -> Pipeline:
    path = tmp_path / "shop.yaml"
    path.write_text(TEXT + more)
    return load_pipeline(path)


def test_an_event_names_job_run_inputs_and_outputs(pipeline: Pipeline, tmp_path: Path) -> None:
    event = run_event(pipeline, "one:9092,two:9092", "a1b2", "START", NOW)
    assert (event["eventType"], event["eventTime"]) == ("START", "2026-01-01T00:00:00+00:00")
    assert event["job"]["name"] == "shop"
    assert event["job"]["facets"]["sql"]["query"] == "select id from orders"
    uuid.UUID(event["run"]["runId"])
    assert [(one["namespace"], one["name"]) for one in event["inputs"]] == [
        ("kafka://one:9092", "orders"),
        ("kafka://one:9092", "orders-eu"),
    ]
    assert event["inputs"][0]["facets"]["schema"]["fields"][0] == {"name": "id", "type": "long"}
    assert [(one["namespace"], one["name"]) for one in event["outputs"]] == [
        ("file", str(tmp_path / "lake/orders")),
        ("s3://bucket", "tables/orders"),
        ("kafka://one:9092", "ids"),
        ("kafka://one:9092", "shop-dead-letters"),
    ]


SECRETS = """\
name: shop
sources:
  orders: {topic: orders, format: text}
transform: {sql: "select value, '${secret:key}' as key from orders"}
sinks:
  - parquet: {path: "s3a://key:${secret:key}@bucket/${secret:key}"}
  - jdbc: {url: "jdbc:mysql://app:in-the-file@db/shop", table: orders}
  - delta: {path: "abfss://lake@account/orders"}
lineage: http://user:${secret:token}@127.0.0.1:9
"""


def test_events_contain_no_secrets(tmp_path: Path) -> None:
    """The names of datasets were the URLs of the file."""
    (tmp_path / "shop.yaml").write_text(SECRETS)
    pipeline = load_pipeline(
        tmp_path / "shop.yaml", FileOptions(environment={"key": 'hunter"/2;2', "token": "hunter22"})
    )
    event = run_event(pipeline, "b:1", "a1b2", "FAIL", NOW, 'no hunter"/2;2')
    assert [(one["namespace"], one["name"]) for one in event["outputs"]] == [
        ("s3://bucket", "********"),
        ("mysql://db/shop", "orders"),
        ("abfss://lake@account", "orders"),
    ]
    assert event["job"]["facets"]["sql"]["query"] == "select value, '********' as key from orders"
    assert event["run"]["facets"]["errorMessage"]["message"] == "no ********"
    assert "hunter" not in json.dumps(event)
    told: list[str] = []
    with LineageReporter(pipeline, "b:1", "one", told.append):
        pass
    assert told[0].startswith("lineage events cannot be sent to http://user:********@127.0.0.1:9: ")
    assert "hunter" not in told[0]


def test_every_event_of_a_run_has_the_same_run_id(pipeline: Pipeline) -> None:
    first, last = (run_event(pipeline, "b:1", "a1b2", kind, NOW) for kind in ("START", "COMPLETE"))
    assert first["run"]["runId"] == last["run"]["runId"]
    assert first["run"]["runId"] != run_event(pipeline, "b:1", "other", "START", NOW)["run"]["runId"]


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_events_go_to_a_file_with_how_the_run_ended(tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    pipeline = load(tmp_path, f"lineage: file:{file}\n")
    with LineageReporter(pipeline, "b:1", "one", lambda _: None):
        pass
    with pytest.raises(PipelineRunError), LineageReporter(pipeline, "b:1", "two", lambda _: None):
        raise PipelineRunError("the topic is gone")
    with pytest.raises(KeyboardInterrupt), LineageReporter(pipeline, "b:1", "three", lambda _: None):
        raise KeyboardInterrupt
    with LineageReporter(pipeline, "b:1", "four", lambda _: None) as stopped:
        stopped.is_aborted = True
    found = lines(file)
    kinds = ["START", "COMPLETE", "START", "FAIL", "START", "ABORT", "START", "ABORT"]
    assert [event["eventType"] for event in found] == kinds
    assert found[3]["run"]["facets"]["errorMessage"]["message"] == "the topic is gone"


@pytest.fixture
def received() -> Iterator[tuple[str, list[Any]]]:
    events: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            events.append((self.path, self.headers["Authorization"], json.loads(body)["eventType"]))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", events
    server.shutdown()
    server.server_close()
    thread.join()


def test_events_are_posted_to_the_server_of_the_environment(
    pipeline: Pipeline, received: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, events = received
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "k")
    with LineageReporter(pipeline, "b:1", "one", lambda _: None):
        pass
    assert events == [("/api/v1/lineage", "Bearer k", "START"), ("/api/v1/lineage", "Bearer k", "COMPLETE")]


def test_a_server_that_answers_nonsense_disturbs_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"what?\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        pipeline, told = load(tmp_path, f"lineage: http://127.0.0.1:{server.getsockname()[1]}\n"), []
        with LineageReporter(pipeline, "b:1", "one", told.append):
            pass
    assert len(told) == 1
    assert told[0].startswith(f"lineage events cannot be sent to {pipeline.lineage}: ")


def test_a_server_that_is_away_is_told_once_and_disturbs_nothing(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    told: list[str] = []
    with LineageReporter(pipeline, "b:1", "one", told.append):
        pass
    assert len(told) == 1
    assert told[0].startswith("lineage events cannot be sent to http://127.0.0.1:9: ")


def test_another_target_is_a_mistake_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match="neither http://HOST:PORT, https://HOST nor file:PATH"):
        load(tmp_path, "lineage: kafka:9092\n")
