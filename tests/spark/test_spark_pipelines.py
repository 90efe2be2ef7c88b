"""Pipelines as files, end to end: what arrives in every sink, what ends as a dead letter, and how runs end."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from test_spark_source import read
from typer.testing import CliRunner

from sskafka.cli.commands import app
from sskafka.client.errors import UnknownTopicError
from sskafka.model.pipeline_events import Event, EventType
from sskafka.model.pipeline_runs import RunState, RunView, runs_of
from sskafka.pipelines.connector.encode import Row
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import Pipeline, Trigger, load_pipeline
from sskafka.pipelines.files.variables import FileOptions
from sskafka.pipelines.runner.dead_letters import DeadLetters
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.events import EventLog
from sskafka.pipelines.runner.plan import backlog, resolved_schema
from sskafka.pipelines.runner.run import RunSettings, run_pipeline
from sskafka.pipelines.shipped.reading import committed_records
from sskafka.pipelines.spark_log import written_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = """\
name: {name}
sources:
  orders:
    topic: {topic}
    schema: id long not null, user string, amount double, at timestamp
    event_time: at
    watermark: 1 hour
    dedupe: [id]
    expectations:
      - {{name: positive, check: amount > 0, action: dlq}}
      - {{name: has_user, check: user is not null, action: warn}}
transform:
  sql: select id, user, amount, at, _partition, _offset from orders
sinks:
  - parquet: {{path: parquet}}
  - delta: {{path: delta}}
  - topic: {{topic: {topic}-out, key: user}}
trigger: available-now
"""


def order(number: int, **changes: Any) -> bytes:
    fields = {"id": number, "user": f"u{number % 5}", "amount": 1.5, "at": "2026-01-01T00:00:00Z", **changes}
    return json.dumps(fields).encode()


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Pipeline]:
    """A pipeline from its text, with the topic filled in."""

    def write(text: str, topic: str, **names: str) -> Pipeline:
        path = tmp_path / "pipeline.yaml"
        path.write_text(text.format(name=topic, topic=topic, **names))
        return load_pipeline(path)

    return write


@pytest.fixture
def run(spark: "SparkSession", bootstrap: str) -> Callable[..., Any]:
    return lambda pipeline, **options: run_pipeline(pipeline, RunSettings(bootstrap, "local[2]"), **options)


def test_every_sink_holds_every_good_record_once_and_the_rest_is_dead(
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic = new_topic(2, "orders")
    bad = [b"not json", b"\xff\xfe", None, order(7, id="seven"), order(8, amount=-1), b'{"user": "x"}']
    produce(topic, [order(number) for number in range(50)], 0)
    produce(topic, [*bad, order(3), order(50, user=None), order(51, extra="drift")], 1)
    pipeline = written(ORDERS, topic)
    progress: list[Any] = []
    run(pipeline, on_progress=progress.append)
    produce(topic, [order(number) for number in range(52, 60)], 0)
    run(pipeline)

    expected = list(range(60))
    parquet = spark.read.parquet(str(tmp_path / "parquet"))
    assert sorted(row["id"] for row in parquet.collect()) == expected
    assert sorted(deltalake.DeltaTable(tmp_path / "delta").to_pyarrow_table()["id"].to_pylist()) == expected
    out = read(spark, bootstrap, subscribe=f"{topic}-out", kafka__isolation__level="read_committed").collect()
    assert sorted(json.loads(bytes(row["value"]))["id"] for row in out) == expected
    unmet = {query.query: query.unmet for query in progress[-1]}
    assert unmet["parquet"] == {"has_user": 1}
    assert {query.query: (query.rows_in, query.rows_out) for query in progress[-1]} == {
        "parquet": (59, 52),
        "delta": (59, 52),
        "topic": (59, 52),
        "dead-letters": (59, 6),
    }

    letters = list(DeadLetters(session, bootstrap, pipeline.dead_letter_topic).waiting())
    assert [(letter.topic, letter.partition, letter.offset, letter.value) for letter in letters] == [
        (topic, 1, offset, value) for offset, value in enumerate(bad)
    ]
    assert [letter.error for letter in letters] == [
        "the value is not JSON",
        "the value is not JSON",
        "the record has no value",
        "the field id is not long",
        "the expectation positive is not met: amount > 0",
        "the field id is missing",
    ]


def test_dead_letters_are_sent_back_once_as_they_were(
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
) -> None:
    topic = new_topic(1, "orders")
    produce(topic, [Row(b"k", b"one", (("trace", b"7"),)), b"two", b"three"])
    pipeline = written(ORDERS.replace("  - delta: {{path: delta}}\n", ""), topic)
    run(pipeline)
    letters = DeadLetters(session, bootstrap, pipeline.dead_letter_topic)
    assert letters.replay(limit=2) == 2
    sent_back = read(spark, bootstrap, subscribe=topic, includeHeaders="true").filter("offset = 3").collect()[0]
    assert (bytes(sent_back["key"]), bytes(sent_back["value"])) == (b"k", b"one")
    assert [(one["key"], bytes(one["value"])) for one in sent_back["headers"]] == [("trace", b"7")]
    assert [letter.value for letter in letters.waiting()] == [b"three"]
    assert letters.replay() == 1
    assert letters.replay() == 0
    assert len(list(letters.waiting(everything=True))) == 3
    assert backlog(session, pipeline, bootstrap)[0].records == 3


def newest_run(session: ClusterSession, bootstrap: str, pipeline: str) -> RunView:
    events = EventLog(session, bootstrap).everything()
    return [run for run in runs_of(events, time.time() * 1000) if run.pipeline == pipeline][-1]


def test_a_stop_ends_between_batches_and_the_next_run_reads_nothing_twice(
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic = new_topic(1, "orders")
    produce(topic, [order(number) for number in range(3000)])
    busy = written(STOPPED, topic)  # batches follow one another without a pause
    log = EventLog(session, bootstrap)
    asked = threading.Event()

    def ask(queries: list[Any]) -> None:
        if not asked.is_set() and any(query.rows_in for query in queries):
            asked.set()
            running = newest_run(session, bootstrap, topic)
            assert running.state in {RunState.STARTING, RunState.RUNNING}
            log.append(Event(topic, running.run, EventType.STOP_REQUESTED, int(time.time() * 1000)))

    first = run(busy, on_progress=ask)
    stopped = newest_run(session, bootstrap, topic)
    assert (stopped.state, stopped.run) == (RunState.STOPPED, first.run)
    assert 0 < first.rows_in < 3000, "it was stopped in the middle of what waited"
    for query in ("parquet", "dead-letters"):
        begun, done = (
            {int(file.name) for file in (tmp_path / "checkpoints" / topic / query / kind).glob("[0-9]*")}
            for kind in ("offsets", "commits")
        )
        assert begun == done, f"{query} was stopped within a batch"

    second = run(replace(busy, trigger=Trigger(""), sources=(replace(busy.sources[0], max_offsets_per_trigger=None),)))
    assert newest_run(session, bootstrap, topic).state is RunState.DONE
    read_first = {query.query: query.rows_in for query in first.queries}
    assert {query.query: query.rows_in + read_first[query.query] for query in second.queries} == {
        "parquet": 3000,
        "dead-letters": 3000,
    }
    rows = pq.read_table(tmp_path / "stopped")  # every file that lies there, as other programs read them
    assert sorted(rows["id"].to_pylist()) == list(range(3000))


STOPPED = """\
name: {name}
sources:
  orders:
    topic: {topic}
    schema: id long not null
    max_offsets_per_trigger: 20
sinks:
  - parquet: {{path: stopped}}
trigger: 1 milliseconds
"""


PLAIN = """\
name: {name}
sources:
  lines: {{topic: {topic}, format: text}}
sinks:
  - parquet: {{path: plain}}
trigger: available-now
"""


def test_after_a_reset_everything_is_read_again(
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic = new_topic(1, "lines")
    produce(topic, [b"one", b"two", None])
    pipeline = written(PLAIN, topic)
    run(pipeline)
    assert not backlog(session, pipeline, bootstrap)[0].is_first_run
    reset = CliRunner().invoke(app, ["pipeline", "reset", str(pipeline.path), "--execute", "-b", bootstrap])
    assert reset.exit_code == 0, reset.output
    assert backlog(session, pipeline, bootstrap)[0].is_first_run
    assert not (tmp_path / "plain").exists()
    (aside,) = tmp_path.glob("plain-before-*")
    run(pipeline)
    for directory in (aside, tmp_path / "plain"):
        rows = spark.read.parquet(str(directory)).orderBy("_offset").collect()
        assert [row["value"] for row in rows] == ["one", "two", None]


JOIN = """\
name: {name}
sources:
  orders:
    topic: {topic}
    schema: id long, user string, at timestamp
    event_time: at
    watermark: 1 minute
  users:
    topic: {users}
    schema: user string, city string, at timestamp
    event_time: at
    watermark: 1 minute
transform:
  python: steps.py:joined
sinks:
  - parquet: {{path: joined}}
trigger: available-now
"""
STEPS = """\
from pyspark.sql import functions as sf


@sf.udf("string")
def shout(text):
    return text.upper()


def joined(spark, sources):
    orders, users = sources["orders"].alias("o"), sources["users"].alias("u")
    near = sf.expr("o.user = u.user and u.at between o.at - interval 1 minute and o.at + interval 1 minute")
    return orders.join(users, near).select("o.id", shout("u.city").alias("city"))
"""


def test_two_topics_are_joined_by_a_function_of_a_file(
    spark: "SparkSession",
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic, users = new_topic(1, "orders"), new_topic(1, "users")
    produce(topic, [order(number) for number in range(10)])
    produce(users, [b'{"user": "u3", "city": "rome", "at": "2026-01-01T00:00:30Z"}'])
    (tmp_path / "steps.py").write_text(STEPS)
    run(written(JOIN, topic, users=users))
    rows = spark.read.parquet(str(tmp_path / "joined")).collect()
    assert sorted((row["id"], row["city"]) for row in rows) == [(3, "ROME"), (8, "ROME")]


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("select id, user", "select idd, user", r"pipeline.yaml:13: transform.sql: .*idd.* cannot be resolved"),
        ("select id, user", "select id user,", r"pipeline.yaml:13: transform.sql: .*Syntax error"),
        ("amount > 0", "amnt > 0", r"pipeline.yaml:10: sources.orders.expectations\[0\].check: .*amnt"),
        (
            "key: user",
            "key: usr",
            r"pipeline.yaml:17: sinks\[2\].topic.key: there is no column 'usr'; the result has id",
        ),
        ("action: dlq", "action: fail", "the expectation positive is not met"),
    ],
)
def test_what_goes_wrong_is_told_in_a_sentence(
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    old: str,
    new: str,
    part: str,
) -> None:
    topic = new_topic(1, "orders")
    produce(topic, [order(1, amount=-1)])
    with pytest.raises(PipelineRunError, match=part) as failure:
        run(written(ORDERS.replace(old, new), topic))
    assert "\n" not in str(failure.value)
    failed = newest_run(session, bootstrap, topic)
    assert (failed.state, failed.error) == (RunState.FAILED, str(failure.value))


def test_a_topic_that_is_not_there_is_told_before_spark_starts(
    written: Callable[..., Pipeline], run: Callable[..., Any]
) -> None:
    said: list[str] = []
    with pytest.raises(UnknownTopicError, match="no-such-topic-here"):
        run(written(ORDERS, "no-such-topic-here"), tell=said.append)
    assert not any("Spark" in text for text in said)


def test_the_plan_knows_schema_and_backlog(
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
) -> None:
    topic = new_topic(1, "orders")
    produce(topic, [order(number) for number in range(10)])
    pipeline = written(ORDERS, topic)
    assert [(one.query, one.records, one.is_first_run) for one in backlog(session, pipeline, bootstrap)] == [
        ("parquet", 10, True),
        ("delta", 10, True),
        ("topic", 10, True),
    ]
    schema = resolved_schema(spark, pipeline, bootstrap)
    assert schema == [
        ("id", "bigint"),
        ("user", "string"),
        ("amount", "double"),
        ("at", "timestamp"),
        ("_partition", "int"),
        ("_offset", "bigint"),
    ]


AVRO = """\
name: {name}
sources:
  orders:
    topic: {topic}
    format: avro
    framing: confluent
    tombstones: keep
    schema: |
      {{"type": "record", "name": "Order", "fields": [
        {{"name": "id", "type": "long"}}, {{"name": "user", "type": ["null", "string"]}}]}}
sinks:
  - parquet: {{path: avro}}
trigger: available-now
"""


def test_avro_records_and_bytes_that_are_none(
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic = new_topic(1, "avro")
    framing = b"\x00\x00\x00\x00\x07"
    produce(topic, [framing + b"\x0e\x02\x06ann", framing + b"\x10\x00", framing + b"\x10\x09", b"x", None])
    pipeline = written(AVRO, topic)
    run(pipeline)
    rows = spark.read.parquet(str(tmp_path / "avro")).orderBy("_offset").collect()
    assert [(row["id"], row["user"], row["_offset"]) for row in rows] == [(7, "ann", 0), (8, None, 1), (None, None, 4)]
    letters = list(DeadLetters(session, bootstrap, pipeline.dead_letter_topic).waiting())
    assert [letter.offset for letter in letters] == [2, 3]


LATE = """\
name: {name}
sources:
  orders:
    topic: {topic}
    schema: id long, at timestamp
    event_time: at
    watermark: 1 minute
    max_offsets_per_trigger: 1
transform:
  sql: select window(at, '1 minute').start as minute, count(*) as orders from orders group by window(at, '1 minute')
sinks:
  - parquet: {{path: late}}
trigger: available-now
"""


def test_what_comes_after_the_watermark_changes_no_answer(
    spark: "SparkSession",
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic = new_topic(1, "late")
    pipeline = written(LATE, topic)
    for at in ("00:00:10", "01:00:00", "01:00:30", "00:00:20", "02:00:00"):  # a batch each
        produce(topic, [order(1, at=f"2026-01-01T{at}Z")])
    run(pipeline)
    rows = spark.read.parquet(str(tmp_path / "late")).orderBy("minute").collect()
    assert [(row["minute"].isoformat(), row["orders"]) for row in rows] == [
        ("2026-01-01T00:00:00", 1),
        ("2026-01-01T01:00:00", 2),
    ]


CHAIN = """\
name: {name}
variables:
  limit: 10
sources:
  orders: {{topic: {topic}, schema: "id long not null, user string, amount double"}}
steps:
  large:
    sql: select id, user, amount from orders where amount > ${{limit}}
    expectations: [{{name: has_user, check: user is not null, action: drop}}]
  named:
    python: naming.py:with_upper_case
transform:
  sql: select id, upper_user from named
sinks:
  - parquet: {{path: result}}
  - parquet: {{name: all, path: all, from: orders}}
  - topic: {{topic: "{topic}-large", key: id, from: large}}
trigger: available-now
profiles:
  strict: {{variables: {{limit: 30}}}}
"""


def test_steps_feed_each_other_and_sinks_choose_among_them(
    spark: "SparkSession",
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic = new_topic(1, "orders")
    (tmp_path / "naming.py").write_text(
        "from pyspark.sql import functions as sf\n"
        "def with_upper_case(spark, tables):\n"
        "    return tables['large'].withColumn('upper_user', sf.upper('user'))\n"
    )
    produce(topic, [order(number, amount=number) for number in range(40)])
    produce(topic, [order(40, amount=40, user=None)])
    run(written(CHAIN, topic))
    assert sorted(row["id"] for row in spark.read.parquet(str(tmp_path / "all")).collect()) == list(range(41))
    result = spark.read.parquet(str(tmp_path / "result")).collect()
    assert sorted((row["id"], row["upper_user"]) for row in result) == [(n, f"U{n % 5}") for n in range(11, 40)]
    large = read(spark, bootstrap, subscribe=f"{topic}-large", kafka__isolation__level="read_committed").collect()
    assert sorted(json.loads(bytes(row["value"]))["id"] for row in large) == list(range(11, 40))
    path = tmp_path / "pipeline.yaml"
    path.write_text(
        path.read_text()
        .replace(f"name: {topic}", f"name: {topic}-strict")
        .replace("path: result", "path: strict")
        .replace("path: all", "path: strict-all")
    )
    run(load_pipeline(path, FileOptions("strict")))
    strict = spark.read.parquet(str(tmp_path / "strict")).collect()
    assert sorted(row["id"] for row in strict) == list(range(31, 40))


BROKEN = """\
name: {name}
sources:
  orders: {{topic: {topic}, schema: "id long not null"}}
transform: {{python: "{file}:broken"}}
sinks: [{{parquet: {{path: out}}}}]
trigger: available-now
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    return tables['nothing']\n", r"broken.py:5, in broken: KeyError: 'nothing'"),
        (
            "    return tables['orders'].withColumn('x', sf.udf(lambda id: RATES[id], 'int')('id'))\n",
            r"KeyError: 0 \(broken.py:5, in <lambda>\)",
        ),
    ],
    ids=["while the query is made", "while it runs"],
)
def test_an_error_in_a_user_s_function_names_its_line_and_spark_s_log(
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
    body: str,
    expected: str,
) -> None:
    topic = new_topic(1, "orders")
    produce(topic, [order(0)])
    head = "from pyspark.sql import functions as sf\nRATES = {}\n\ndef broken(spark, tables):\n"
    (tmp_path / f"broken_{topic.replace('-', '_')}.py").write_text(head + body)
    pipeline = written(BROKEN, topic, file=f"broken_{topic.replace('-', '_')}.py")
    with pytest.raises(PipelineRunError, match=expected.replace("broken.py", r"broken_\w+.py")) as failure:
        run(pipeline)
    log = written_log()
    assert log is None or str(log) in failure.value.hint


TABLES = """\
name: {name}
sources:
  orders: {{topic: {topic}, schema: "id long not null, user string, amount double, at timestamp"}}
transform: {{sql: "{sql}"}}
sinks:
  - delta: {{path: delta, partition_by: user, evolve: true}}
  - iceberg:
      table: shop.orders
      catalog: {{type: sql, uri: "sqlite:///{directory}/catalog.db", warehouse: lake}}
      partition_by: user
      evolve: true
trigger: available-now
"""


def test_tables_get_their_files_from_spark_s_tasks_and_new_columns(
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topic = new_topic(3, "orders")
    for partition in range(3):
        produce(topic, [order(number) for number in range(partition, 60, 3)], partition)
    run(written(TABLES, topic, directory=str(tmp_path), sql="select id, user, at from orders"))
    produce(topic, [order(60), order(61, user=None)], 0)
    run(written(TABLES, topic, directory=str(tmp_path), sql="select id, user, at, amount from orders"))
    delta = deltalake.DeltaTable(tmp_path / "delta")
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path)}
    iceberg = load_catalog("default", **properties).load_table("shop.orders")
    for rows in (delta.to_pyarrow_table().to_pylist(), iceberg.scan().to_arrow().to_pylist()):
        found = sorted(
            (row["id"], row["user"], row["amount"], row["at"].isoformat()) for row in rows if row["id"] != 61
        )
        at = "2026-01-01T00:00:00+00:00"
        assert found == [(n, f"u{n % 5}", None if n < 60 else 1.5, at) for n in range(61)]
        assert [row["user"] for row in rows if row["id"] == 61] == [None]
    assert {action["partition.user"] for action in rows_of(delta.get_add_actions(flatten=True))} == {
        None,
        *(f"u{number}" for number in range(5)),
    }


def rows_of(actions: Any) -> list[dict[str, Any]]:
    return list(pa.table(actions).to_pylist())


UPDATES = """\
name: {name}
sources:
  orders:
    topic: {topic}
    schema: id long, user string, at timestamp
    event_time: at
    watermark: 1 hour
    max_offsets_per_trigger: 10
transform:
  sql: select window(at, '1 minute').start as minute, count(*) as orders from orders group by window(at, '1 minute')
sinks:
  - topic: {{topic: {topic}-out, key: minute}}
output_mode: update
trigger: available-now
"""


def test_a_topic_gets_each_update_of_a_window(
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    written: Callable[..., Pipeline],
    run: Callable[..., Any],
) -> None:
    topic = new_topic(1, "orders")
    pipeline = written(UPDATES, topic)
    produce(topic, [order(number) for number in range(20)])
    result = run(pipeline)
    assert {query.query: query.rows_out for query in result.queries} == {"topic": 2, "dead-letters": 0}
    assert result.queries[0].reads == f"{topic}[0: 10..20]"
    produce(topic, [order(number) for number in range(5)])
    run(pipeline)
    values = [json.loads(value or b"{}") for _, value in committed_records(bootstrap, f"{topic}-out")]
    assert [value["orders"] for value in values] == [10, 20, 25]
