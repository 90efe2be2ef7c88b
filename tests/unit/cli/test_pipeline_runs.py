"""`pipeline status` and `stop`: what they make of events."""

import json
import time
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from sskafka import Broker
from sskafka.cli.commands import app
from sskafka.client.config import ConnectionConfig
from sskafka.model.pipeline_events import Event, EventType
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.runner.events import EventLog

QUERIES = [
    {"query": "parquet", "batch": 3, "rows_in": 50, "rows_out": 40, "in_per_s": 10.4, "out_per_s": 9.6, "lag": 7},
    {"query": "dead-letters", "batch": 3, "rows_in": 50, "rows_out": 2},
]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker, ClusterSession(broker.bootstrap_servers, ConnectionConfig()) as session:
        log = EventLog(session, broker.bootstrap_servers)
        log.create()
        now_ms = int(time.time() * 1000)
        for event in (
            Event("orders", "r1", EventType.STARTED, now_ms - 120_000),
            Event("orders", "r1", EventType.FAILED, now_ms - 60_000, {"error": "boom"}),
            Event("clicks", "r2", EventType.STARTED, now_ms - 90_000),
            Event("orders", "r3", EventType.STARTED, now_ms - 2_000),
            Event("orders", "r3", EventType.PROGRESS, now_ms - 1_000, {"queries": QUERIES}),
        ):
            log.append(event)
        yield broker.bootstrap_servers


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", *arguments])
    return result.exit_code, result.output


def test_the_newest_run_of_each_pipeline(bootstrap: str) -> None:
    rows = json.loads(invoke("status", "--format", "json", "-b", bootstrap)[1])
    seen = {(row["name"], row["run"], row["state"], row["query"]) for row in rows}
    assert seen == {
        ("orders", "r3", "running", "parquet"),
        ("orders", "r3", "running", "dead-letters"),
        ("clicks", "r2", "lost", None),
    }
    parquet = next(row for row in rows if row["query"] == "parquet")
    assert (parquet["rows_in"], parquet["rows_out"], parquet["in_per_s"], parquet["lag"]) == (50, 40, 10, 7)
    assert parquet["dead_letters"] == 2


def test_past_runs_the_newest_first(bootstrap: str) -> None:
    rows = json.loads(invoke("status", "orders", "--history", "--format", "json", "-b", bootstrap)[1])
    assert [(row["run"], row["state"], row["error"], row["seconds"]) for row in rows] == [
        ("r3", "running", None, 1),
        ("r1", "failed", "boom", 60),
    ]
    text = invoke("status", "orders", "--history", "-n", "1", "-b", bootstrap)[1]
    assert text.splitlines()[0].split() == (
        ["NAME", "RUN", "STATE", "STARTED", "SECONDS", "ROWS", "IN", "ROWS", "OUT", "DEAD", "LETTERS", "ERROR"]
    )
    assert "boom" not in text


def test_a_pipeline_that_never_ran(bootstrap: str) -> None:
    code, told = invoke("status", "nobody", "-b", bootstrap)
    assert code == 1
    assert "has run on this cluster" in told


def test_a_run_that_is_lost_is_not_waited_for(bootstrap: str) -> None:
    began = time.monotonic()
    code, told = invoke("stop", "clicks", "-b", bootstrap)
    assert code == 1
    assert "has been silent for 1 min" in told
    assert time.monotonic() - began < 10
