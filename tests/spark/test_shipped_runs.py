"""Shipped pipelines over several runs: late records, restarts, records that cannot be used, exit codes."""

import asyncio
import json
import signal
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner
from waiting import wait_until

from sskafka.cli.commands import app
from sskafka.client.admin import Admin, NewTopic
from sskafka.evaluation.results import Row, keep_results
from sskafka.evaluation.results import Run as EvaluationRun
from sskafka.model.errors import KafkaError
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import Pipeline, Trigger
from sskafka.pipelines.runner.dead_letters import DeadLetters
from sskafka.pipelines.runner.run import RunSettings, run_pipeline
from sskafka.pipelines.shipped import load_shipped
from sskafka.pipelines.shipped.archive import gaps
from sskafka.pipelines.shipped.cdc import Customers, change_message, with_tombstones
from sskafka.pipelines.shipped.evaluation import made_up_run, rows_of
from sskafka.pipelines.shipped.exercise import Message, Task, differences
from sskafka.pipelines.shipped.reading import committed_records, delta_rows, topic_rows
from sskafka.pipelines.shipped.selfcheck import apart, make_exercise, produce, topics_of
from sskafka.pipelines.shipped.sessions import Click, Session, click_stream, session_of, sessions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., Any]


@pytest.fixture
def shipped(tmp_path: Path) -> Callable[[str], Pipeline]:
    """A shipped pipeline that reads what is there, on topics of its own."""
    return lambda name: replace(apart(load_shipped(name, tmp_path), uuid.uuid4().hex[:8]), trigger=Trigger(""))


@pytest.fixture
def write(bootstrap: str) -> Callable[[Pipeline, str, Iterable[Message]], None]:
    def send(pipeline: Pipeline, table: str, messages: Iterable[Message]) -> None:
        asyncio.run(produce(bootstrap, topics_of(pipeline), {table: list(messages)}))

    return send


@pytest.fixture
def run(spark: "SparkSession", bootstrap: str) -> Run:
    return lambda pipeline: run_pipeline(pipeline, RunSettings(bootstrap, "local[2]"))


def parquet_sessions(spark: "SparkSession", directory: Path) -> list[Session]:
    """By Spark, which knows the files that were committed."""
    rows = spark.read.parquet(str(directory / "sessions")).collect()
    return sorted(session_of(row.asDict()) for row in rows)


def test_sessions_go_on_over_a_restart_and_late_clicks_do_not_change_them(
    spark: "SparkSession", bootstrap: str, shipped: Callable[[str], Pipeline], write: Any, run: Run, tmp_path: Path
) -> None:
    pipeline = shipped("sessions")
    clicks = list(islice(click_stream(5), 200))
    closing = Click("last", "/", clicks[-1].at + timedelta(days=1))
    broken = Message("user-1", b'{"user": "user-1", "page": "/", "at": "yesterday"}')
    write(pipeline, "clicks", [*(click.message() for click in clicks[:120]), broken])
    assert run(pipeline).dead_letters == 1
    before = parquet_sessions(spark, tmp_path)
    write(pipeline, "clicks", (click.message() for click in (*clicks[120:], closing)))
    run(pipeline)
    expected = sorted(sessions_of(clicks))
    assert 0 < len(before) < len(expected)
    assert parquet_sessions(spark, tmp_path) == expected

    late = Click("user-0", "/late", clicks[0].at)
    write(pipeline, "clicks", [late.message(), closing._replace(at=closing.at + timedelta(days=1)).message()])
    run(pipeline)
    assert parquet_sessions(spark, tmp_path) == sorted([*expected, *sessions_of([closing])])
    assert sorted(map(session_of, topic_rows(pipeline, bootstrap))) == parquet_sessions(spark, tmp_path)


def test_changes_that_cannot_be_used_are_dead_letters_and_the_rest_is_applied(
    bootstrap: str, session: ClusterSession, shipped: Callable[[str], Pipeline], write: Any, run: Run
) -> None:
    pipeline = shipped("cdc")
    customers = Customers(3)
    good = list(with_tombstones(customers.change() for _ in range(60)))
    drifted = json.loads(change_message("c", 7001, None, {"id": 7001, "name": "new", "city": "Rome"}).value or b"")
    drifted["after"]["loyalty"] = "gold"  # a column more is no trouble
    wrong_type = change_message("c", 7002, None, {"id": "seven", "name": "x", "city": "y"})  # a type that changed is
    bad = [
        wrong_type,
        Message("7003", b"{ not json"),
        change_message("x", 7004, None, {"id": 7004, "name": "x", "city": "y"}),
        change_message("d", 7005, None, None),
    ]
    assert any(message.value is None for message in good), "what follows a deletion is no mistake"
    write(pipeline, "changes", [*good[:30], *bad, Message("7001", json.dumps(drifted).encode()), *good[30:]])
    run(pipeline)
    expected = [tuple(row.values()) for row in customers.rows.values()] + [(7001, "new", "Rome")]
    assert sorted((row["id"], row["name"], row["city"]) for row in delta_rows(pipeline)) == sorted(expected)

    letters = DeadLetters(session, bootstrap, pipeline.dead_letter_topic)
    waiting = sorted(letters.waiting(), key=lambda letter: letter.key or b"")
    assert [(letter.key, letter.value) for letter in waiting] == [
        ((message.key or "").encode(), message.value) for message in bad
    ]
    assert all(letter.topic == topics_of(pipeline)["changes"] for letter in waiting)
    assert [letter.error.split(":")[0] for letter in waiting] == [
        "the value is not JSON of this schema",
        "the value is not JSON",
        "the expectation known_op is not met",
        "the expectation has_its_row is not met",
    ]
    write(pipeline, "changes", [change_message("d", 7001, {"id": 7001, "name": "new", "city": "Rome"}, None)])
    run(pipeline)
    assert 7001 not in {row["id"] for row in delta_rows(pipeline)}
    assert len(list(letters.waiting())) == len(bad)


def test_an_archive_of_several_runs_has_no_gaps(
    spark: "SparkSession", bootstrap: str, shipped: Callable[[str], Pipeline], write: Any, run: Run, tmp_path: Path
) -> None:
    pipeline = shipped("archive")
    exercise = make_exercise("archive", Task(300, 1, topics_of(pipeline)))
    messages = exercise.messages["records"]
    for part in (messages[:100], messages[100:110], messages[110:]):
        write(pipeline, "records", part)
        run(pipeline)
    assert differences(exercise.expected, exercise.found(pipeline, bootstrap)) == []
    archived = spark.read.parquet(str(tmp_path / "archive"))
    rows = [row.asDict() for row in archived.select("topic", "partition", "offset", "day").collect()]
    assert gaps(rows) == []
    (topic,) = topics_of(pipeline).values()
    directories = {path.parent.relative_to(tmp_path / "archive") for path in tmp_path.glob("archive/*/*/*.parquet")}
    assert directories == {Path(f"topic={topic}/day={day}") for day in {row["day"] for row in rows}}


def test_latest_and_compaction_leave_the_same_table(
    bootstrap: str, session: ClusterSession, shipped: Callable[[str], Pipeline], write: Any, run: Run
) -> None:
    pipeline = shipped("latest")
    (topic,) = topics_of(pipeline).values()
    compacted = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": "8192",
        "min.compaction.lag.ms": "0",
        "max.compaction.lag.ms": "1000",
        "delete.retention.ms": "0",
    }
    outcome = session.run(Admin(session.cluster).create_topics([NewTopic(topic, 2, configs=compacted)]))[topic]
    assert not isinstance(outcome, KafkaError), outcome
    exercise = make_exercise("latest", Task(2_000, 11, {"records": topic}))
    messages = exercise.messages["records"]
    write(pipeline, "records", messages[:1000])
    run(pipeline)
    write(pipeline, "records", messages[1000:])
    run(pipeline)
    by_spark = {row["key"]: row["value"] for row in delta_rows(pipeline)}
    assert by_spark == dict(exercise.expected)

    def is_compacted() -> bool:
        return len(list(committed_records(bootstrap, topic))) < len(messages) // 2

    wait_until(is_compacted, "compaction", timeout_s=120)
    assert table(committed_records(bootstrap, topic)) == by_spark


def table(records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[str, str]:
    """What a reader of the topic from its start knows in the end."""
    newest = {(key or b"").decode(): value for key, value in records}
    return {key: value.decode() for key, value in newest.items() if value is not None}


def test_the_report_compares_runs_as_the_grid_keeps_them(
    bootstrap: str, shipped: Callable[[str], Pipeline], write: Any, run: Run, tmp_path: Path
) -> None:
    pipeline = shipped("evaluation")
    (topic,) = topics_of(pipeline).values()
    write(pipeline, "measured", [])
    report = tmp_path / "evaluation" / "report.html"
    first = made_up_run("first", 1)
    keep_results(bootstrap, topic, run_of(first[0]), first)
    write(pipeline, "measured", [Message(None, b'{"format": 2, "run_id": "of a version to come"}')])
    assert run(pipeline).dead_letters == 1
    assert "Runs compared" not in report.read_text()

    later = {"run_id": "faster", "started_at": "2026-01-02T00:00:00Z"}
    faster = [row._replace(**later, records_per_second=row.records_per_second * 3) for row in first]
    keep_results(bootstrap, topic, run_of(faster[0]), faster)
    run(pipeline)
    text = report.read_text()
    assert "Runs compared" in text
    assert text.count("<td>3.00</td>") == 2
    assert text.count("<svg") == 3
    assert sorted(rows_of(pipeline)) == sorted([*first, *faster])


def run_of(row: Row) -> EvaluationRun:
    return EvaluationRun(*(getattr(row, name) for name in EvaluationRun._fields))


def test_the_audit_ends_with_an_exit_code(
    spark: "SparkSession",
    bootstrap: str,
    shipped: Callable[[str], Pipeline],
    write: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline = shipped("audit")
    exercise = make_exercise("audit", Task(300, 7, topics_of(pipeline)))
    for table_name, messages in exercise.messages.items():
        write(pipeline, table_name, messages)
    write(pipeline, "events", [Message("web-1", b'{"producer": "web-1"}')])
    found = audit(pipeline, bootstrap)
    assert found.exit_code == 1
    assert "1 dead letters: `sskafka pipeline dlq audit` shows them" in found.stderr
    lost = sum(1 for row in exercise.expected if row[5])  # type: ignore[index]
    assert f"nothing_lost in {lost} rows" in found.stderr
    written = replace(pipeline, path=tmp_path / "audit.yaml")
    assert differences(exercise.expected, exercise.found(written, bootstrap)) == []

    again = audit(pipeline, bootstrap)  # nothing has come since
    assert again.exit_code == 0, again.stderr


def audit(pipeline: Pipeline, bootstrap: str) -> Any:
    topics = [word for table, topic in topics_of(pipeline).items() for word in ("--topic", f"{table}={topic}")]
    command: Sequence[str] = ("pipeline", "run", "audit", "--once", "--name", pipeline.name, "--master", "local[2]")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return CliRunner().invoke(app, [*command, *topics, "-b", bootstrap])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
