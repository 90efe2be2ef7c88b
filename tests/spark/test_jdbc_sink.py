"""Databases as sinks, with Derby: each batch once, whatever is run again, killed or written twice."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from derby import Derby
from process_session import ProcessSession

from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.sink import JdbcSink
from sskafka.pipelines.runner import jdbc
from sskafka.pipelines.runner.database import Database, JdbcSinkError
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.jdbc import JdbcWriter
from sskafka.pipelines.runner.run import RunSettings, run_pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAIT_S = 60
FILE = """\
name: {name}
sources:
  numbers:
    topic: {topic}
    schema: id long not null, name string
    max_offsets_per_trigger: 10
transform: {{sql: "{sql}"}}
output_mode: {mode}
sinks:
  - jdbc:
      url: {url}
      table: {table}
{more}trigger: available-now
"""


@pytest.fixture
def derby(spark: "SparkSession", tmp_path: Path) -> Iterator[Derby]:
    database = Derby(spark, tmp_path / "database")
    yield database
    database.close()


@pytest.fixture
def filed(tmp_path: Path, derby: Derby) -> Callable[..., Pipeline]:
    def write(more: str = "", topic: str = "numbers", **changes: str) -> Pipeline:
        defaults = {
            "sql": "select id, name from numbers", "mode": "append", "url": derby.creating_url, "table": "numbers",
        }  # fmt: skip
        text = "".join(f"      {line}\n" for line in more.splitlines())
        path = tmp_path / "pipeline.yaml"
        path.write_text(FILE.format(**{**defaults, "name": topic, "topic": topic, "more": text, **changes}))
        return load_pipeline(path)

    return write


@pytest.fixture
def writer_of(filed: Callable[..., Pipeline], tmp_path: Path) -> Callable[..., JdbcWriter]:
    """A writer as a run makes it; each has forgotten what others have done."""
    for name, query in {"checkpoint": "0123abcd-query", "other": "4567cdef-query"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "metadata").write_text(json.dumps({"id": query}))

    def make(more: str = "", checkpoint: str = "checkpoint", **changes: str) -> JdbcWriter:
        pipeline = filed(more, **changes)
        (sink,) = pipeline.sinks
        assert isinstance(sink, JdbcSink)
        return JdbcWriter(pipeline, sink, str(tmp_path / checkpoint))

    return make


@pytest.fixture
def named(spark: "SparkSession") -> "Callable[..., DataFrame]":
    def make(**names: str | None) -> "DataFrame":
        rows = [(int(number.removeprefix("n")), name) for number, name in names.items()]
        return spark.createDataFrame(rows, "id long, name string")

    return make


def content(derby: Derby, table: str = "numbers") -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in derby.rows(table))


def test_a_batch_that_is_run_again_is_left_out_and_no_stage_stays(
    derby: Derby, writer_of: Callable[..., JdbcWriter], named: "Callable[..., DataFrame]"
) -> None:
    writer_of()(named(n1="one", n2=None), 0)
    writer_of()(named(n3="three"), 1)
    writer_of()(named(n3="three"), 1)
    writer_of()(named(), 2)
    assert content(derby) == [(1, "one"), (2, None), (3, "three")]
    assert sorted(derby.tables()) == ["numbers", "sskafka_batches"]
    (state,) = derby.rows("sskafka_batches")
    assert (state["QUERY_ID"], int(state["LAST_BATCH"])) == ("0123abcd-query", 2)


def test_a_run_that_was_overtaken_in_the_middle_of_a_batch_writes_nothing(
    derby: Derby,
    writer_of: Callable[..., JdbcWriter],
    named: "Callable[..., DataFrame]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer_of()(named(n1="one"), 0)
    commit = JdbcWriter._commit
    overtaken_at: list[int] = []

    def overtaken(writer: JdbcWriter, *arguments: Any) -> bool:
        if not overtaken_at:
            overtaken_at.append(arguments[-1])
            writer_of()(named(n2="two"), 1)
        return commit(writer, *arguments)

    monkeypatch.setattr(JdbcWriter, "_commit", overtaken)
    writer_of()(named(n2="two"), 1)
    assert content(derby) == [(1, "one"), (2, "two")]


def test_rows_that_a_failed_task_left_in_the_stage_are_noticed(
    derby: Derby,
    writer_of: Callable[..., JdbcWriter],
    named: "Callable[..., DataFrame]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer_of()(named(n1="one"), 0)
    commit = JdbcWriter._commit
    stages: list[str] = []

    def spoiled(writer: JdbcWriter, spark: Any, stage: str, *arguments: Any) -> bool:
        stages.append(stage)
        if len(stages) == 1:
            with Database(spark, writer._sink) as database:
                database.execute(f"insert into {stage} select * from {stage}")
        return commit(writer, spark, stage, *arguments)

    monkeypatch.setattr(JdbcWriter, "_commit", spoiled)
    writer_of()(named(n2="two", n3="three"), 1)
    assert content(derby) == [(1, "one"), (2, "two"), (3, "three")]
    assert len(stages) == 2, "the stage was filled again"


def test_a_statement_behind_a_transaction_is_committed_by_itself(
    spark: "SparkSession", derby: Derby, filed: Callable[..., Pipeline]
) -> None:
    (sink,) = filed().sinks
    assert isinstance(sink, JdbcSink)
    with Database(spark, sink) as database:
        database.execute("create table numbers (id bigint)")
        with pytest.raises(JdbcSinkError, match="Syntax error"):
            break_off(database)
        with database.transaction() as given_up:
            database.execute("insert into numbers values (2)")
            given_up.roll_back()
        with database.transaction():
            database.execute("insert into numbers values (3)")
        database.execute("insert into numbers values (4)")
        assert content(derby) == [(3,), (4,)]


def break_off(database: Database) -> None:
    with database.transaction():
        database.execute("insert into numbers values (1)")
        database.execute("this is not SQL")


def test_rows_of_the_same_keys_replace_those_that_are_there(
    derby: Derby, writer_of: Callable[..., JdbcWriter], named: "Callable[..., DataFrame]"
) -> None:
    keys = {"more": "merge_keys: name", "mode": "update"}
    writer_of(**keys)(named(n1="a", n2="b"), 0)
    writer_of(**keys)(named(n3="b", n4="c"), 1)
    assert content(derby) == [(1, "a"), (3, "b"), (4, "c")]
    with pytest.raises(JdbcSinkError, match=r'1 values of the merge_keys \("name"\) occur more than once'):
        writer_of(**keys)(named(n5="d", n6="d"), 2)
    derby.execute("create table free (id bigint, name varchar(9))")
    without_key = named(n7="e").selectExpr("cast(null as long) as id", "name")
    with pytest.raises(JdbcSinkError, match="1 rows have no value in one of the merge_keys"):
        writer_of("merge_keys: id", table="free")(without_key, 2)
    assert content(derby) == [(1, "a"), (3, "b"), (4, "c")]


@pytest.mark.parametrize(("more", "mode"), [("merge_keys: id", "update"), ("", "complete")])
def test_queries_that_replace_rows_of_one_table_wait_for_each_other(
    derby: Derby,
    writer_of: Callable[..., JdbcWriter],
    named: "Callable[..., DataFrame]",
    monkeypatch: pytest.MonkeyPatch,
    more: str,
    mode: str,
) -> None:
    """The first one waits before it touches the table, so only the shared row can stop the second one."""
    writer_of(more, mode=mode)(named(n1="one"), 0)
    commit = JdbcWriter._commit
    opened, reached, go_on = threading.Event(), threading.Event(), threading.Event()
    advance_batch = jdbc.advance

    def waiting(database: Database, batches: str, query: str, batch: int) -> bool:
        advanced = advance_batch(database, batches, query, batch)
        if query == "0123abcd-query":
            opened.set()
            assert go_on.wait(WAIT_S)
        return advanced

    def noting(writer: JdbcWriter, *arguments: Any) -> bool:
        if writer is second:
            reached.set()
        return commit(writer, *arguments)

    first, second = writer_of(more, mode=mode), writer_of(more, mode=mode, checkpoint="other")
    second(named(), 0)
    monkeypatch.setattr(jdbc, "advance", waiting)
    monkeypatch.setattr(JdbcWriter, "_commit", noting)
    with ThreadPoolExecutor(2) as pool:
        try:
            running = [pool.submit(first, named(n2="two"), 1)]
            assert opened.wait(WAIT_S)
            running.append(pool.submit(second, named(n3="three"), 1))
            assert reached.wait(WAIT_S)
            with pytest.raises(TimeoutError):
                running[1].result(timeout=5)
        finally:
            go_on.set()
    assert [one.result() for one in running] == [None, None]
    if mode == "update":
        assert content(derby) == [(1, "one"), (2, "two"), (3, "three")]
    else:
        assert content(derby) == [(3, "three")]


def test_complete_replaces_the_table_and_a_table_of_the_user_keeps_its_other_columns(
    derby: Derby, writer_of: Callable[..., JdbcWriter], named: "Callable[..., DataFrame]"
) -> None:
    derby.execute(
        "create schema shop",
        "create table shop.numbers (ID bigint not null primary key, NAME varchar(20), KIND varchar(9) default 'new')",
        "insert into shop.numbers values (9, 'nine', 'old')",
    )
    writer_of(table="shop.numbers")(named(n1="one"), 0)
    assert content(derby, "shop.numbers") == [(1, "one", "new"), (9, "nine", "old")]
    writer_of(table="shop.numbers", mode="complete")(named(n2="two"), 1)
    assert content(derby, "shop.numbers") == [(2, "two", "new")]
    with pytest.raises(JdbcSinkError, match=r"the table shop\.numbers has no column more; it has ID, NAME, KIND"):
        writer_of(table="shop.numbers")(named(n2="two").selectExpr("id", "name", "1 as more"), 2)


def test_null_is_written_to_columns_of_types_that_the_user_has_chosen(
    derby: Derby, writer_of: Callable[..., JdbcWriter], named: "Callable[..., DataFrame]"
) -> None:
    """Spark sends null text as a null CLOB to Derby, which refuses it for a VARCHAR column."""
    derby.execute("create table numbers (ID bigint, NAME varchar(5), BYTES varchar(5) for bit data)")

    def rows(**names: str | None) -> "DataFrame":
        return named(**names).selectExpr("id", "name", "cast(name as binary) as bytes")

    writer_of()(rows(n1="one", n2=None, n3=""), 0)
    writer_of()(rows(n4=None), 1)
    assert [row[:2] for row in content(derby)] == [(1, "one"), (2, None), (3, ""), (4, None)]
    assert [row[2] is None for row in content(derby)] == [False, True, False, True]
    with pytest.raises(Exception, match="A truncation error was encountered trying to shrink VARCHAR"):
        writer_of()(rows(n5="too long"), 2)
    assert len(content(derby)) == 4
    keys = {"more": "merge_keys: name", "mode": "update"}
    with pytest.raises(JdbcSinkError, match="1 rows have no value in one of the merge_keys"):
        writer_of(**keys)(rows(n6=None), 2)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("staged", marks=pytest.mark.long),
        "inserted",
        pytest.param("committed", marks=pytest.mark.long),
    ],
)
def test_a_run_that_is_killed_in_the_middle_of_a_batch_leaves_each_row_once(
    bootstrap: str,
    spark: "SparkSession",
    derby: Derby,
    filed: Callable[..., Pipeline],
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    step: str,
) -> None:
    topic = new_topic(2, "numbers")
    for partition in range(2):
        produce(topic, [b'{"id": %d, "name": "n"}' % number for number in range(partition, 40, 2)], partition)
    pipeline = filed(topic=topic)
    command = [sys.executable, Path(__file__).parent / "jdbc_program.py", pipeline.path, bootstrap, "1", step]
    killed = ProcessSession([str(part) for part in command], tmp_path / "killed.log")
    try:
        assert killed.wait() == -9, killed.talk()
        killed.wait_until_gone()
    finally:
        killed.close()
    before = len(content(derby))
    assert 0 < before < 40, "it was killed in the second of several batches"
    run_pipeline(pipeline, RunSettings(bootstrap, "local[2]"))
    assert content(derby) == [(number, "n") for number in range(40)]
    assert sorted(derby.tables()) == ["numbers", "sskafka_batches"], "the stage of the killed run is gone"


POSTGRESQL = "jdbc:postgresql://127.0.0.1:9/shop"


@pytest.mark.parametrize(
    ("more", "url", "told"),
    [
        (
            "",
            POSTGRESQL,
            rf"pipeline.yaml:11: sinks\[0\].jdbc.url: Spark has no jar with a driver for {POSTGRESQL}: add `--conf",
        ),
        (
            "driver: org.nowhere.Driver",
            "",
            "pipeline.yaml:13: .*no jar with the driver org.nowhere.Driver: add `--conf",
        ),
        ("", "jdbc:derby:/nowhere/at/all", "pipeline.yaml:12: .*answers: Database '/nowhere/at/all' not found"),
        ("user: app\npassword: wrong-word", "secured", "yaml:13: .*refuses the user 'app': .*Check user and password"),
    ],
    ids=["no driver", "no driver of that name", "no database", "wrong password"],
)
def test_a_database_that_cannot_be_written_is_told_before_the_first_batch(
    bootstrap: str,
    derby: Derby,
    filed: Callable[..., Pipeline],
    new_topic: Callable[..., str],
    more: str,
    url: str,
    told: str,
) -> None:
    if url == "secured":
        secure(derby)
    topic = new_topic(1, "numbers")
    pipeline = filed(more, topic=topic, url=derby.url if url == "secured" else url or derby.creating_url)
    with pytest.raises(PipelineRunError, match=told) as failure:
        run_pipeline(pipeline, RunSettings(bootstrap, "local[2]"))
    assert "\n" not in str(failure.value)
    assert "wrong-word" not in str(failure.value)


def secure(derby: Derby) -> None:
    """Users need a password from the next start of the database on."""
    settings = {
        "derby.user.app": "right-word",
        "derby.database.propertiesOnly": "true",
        "derby.authentication.provider": "BUILTIN",
        "derby.connection.requireAuthentication": "true",
    }
    derby.execute(
        *[f"call syscs_util.syscs_set_database_property('{key}', '{value}')" for key, value in settings.items()]
    )
    derby.close()
