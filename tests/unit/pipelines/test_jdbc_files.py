"""`jdbc` sinks in pipeline files, and what databases say in one sentence."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.sink import JdbcSink, shown_url
from sskafka.pipelines.runner.database import explained_by_database, jdbc_options

FILE = """\
name: orders
sources:
  orders: {topic: orders, schema: id long}
sinks:
  - jdbc:
      url: jdbc:postgresql://db:5432/shop?ssl=true
      table: sales.orders
      user: app
      password: hunter22
      merge_keys: id
      column_types: {id: decimal(19)}
      options: {batchsize: 5000}
output_mode: update
"""


def load(tmp_path: Path, text: str = FILE) -> Pipeline:
    path = tmp_path / "orders.yaml"
    path.write_text(text)
    return load_pipeline(path)


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    pipeline = load(tmp_path)
    assert pipeline.sinks == (
        JdbcSink(
            "jdbc",
            "jdbc:postgresql://db:5432/shop?ssl=true",
            "sales.orders",
            "app",
            "hunter22",
            "",
            ("id",),
            {"id": "decimal(19)"},
            {"batchsize": "5000"},
        ),
    )
    assert pipeline.masked("user app, password hunter22") == "user app, password ********"
    assert "hunter22" not in repr(pipeline)


@pytest.mark.parametrize(
    ("old", "new", "line", "part"),
    [
        ("url: jdbc:", "url: ", 6, "'postgresql://db:5432/shop' is not a JDBC URL"),
        ("sales.orders", "orders; drop table orders", 7, "is not the name of a table"),
        ("      user: app\n", "", 8, "password: needs user"),
        ("      merge_keys: id\n", "", 12, "the jdbc sink 'jdbc' needs merge_keys to update rows"),
        ("batchsize: 5000", "dbtable: other", 12, "dbtable is given by the field table"),
        ("batchsize: 5000", "truncate: true", 12, "truncate is not possible here"),
        ("merge_keys", "merge_key", 10, "did you mean merge_keys?"),
        ("      table: sales.orders\n", "", 6, "table: is missing"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, part: str) -> None:
    with pytest.raises(PipelineFileError) as failure:
        load(tmp_path, FILE.replace(old, new, 1))
    found = [(problem.line, f"{problem.where}: {problem.text}") for problem in failure.value.problems]
    assert any(at == line and part in text for at, text in found), found


def test_options_name_the_usual_driver_unless_the_file_names_another() -> None:
    given = JdbcSink("jdbc", "jdbc:mysql://db/shop", "orders", "app", "word", options={"batchsize": "10"})
    assert jdbc_options(given, "stage") == {
        "url": "jdbc:mysql://db/shop",
        "dbtable": "stage",
        "user": "app",
        "password": "word",
        "driver": "com.mysql.cj.jdbc.Driver",
        "batchsize": "10",
    }
    assert jdbc_options(JdbcSink("jdbc", "jdbc:mysql://db", "t", driver="own.Driver"), "t")["driver"] == "own.Driver"
    assert "driver" not in jdbc_options(JdbcSink("jdbc", "jdbc:derby:place", "t"), "t")


def java_error(name: str, text: str, state: str | None = None, code: int = 0) -> Any:
    """As much of a Java exception as is asked; py4j knows no SQL state of other exceptions."""
    error = SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: name), getMessage=lambda: text)
    if state is not None:
        error.getSQLState, error.getErrorCode = lambda: state, lambda: code
    return error


SQL = "java.sql.SQLException"


@pytest.mark.parametrize(
    ("error", "field", "part"),
    [
        (java_error("java.lang.ClassNotFoundException", "x.Driver"), "url", "=org.postgresql:postgresql:VERSION"),
        (java_error(SQL, "No suitable driver", "08001"), "url", "has no jar with a driver for jdbc:postgresql://db/shop:"),
        (java_error(SQL, "password authentication failed", "28P01"), "user", "refuses the user 'app': password"),
        (java_error(SQL, "ORA-01017: denied", "72000", 1017), "user", "Check user and password"),
        (java_error(SQL, "Connection refused.\nmore", "08001"), "url", "cannot be reached: Connection refused. Check"),
        (java_error(SQL, "relation is locked", "55P03"), "table", "//db/shop answers: relation is locked"),
    ],
)  # fmt: skip
def test_what_a_database_says_is_told_with_the_next_step(error: Any, field: str, part: str) -> None:
    sink = JdbcSink("jdbc", "jdbc:postgresql://db/shop?password=hunter22", "orders", "app")
    told = explained_by_database(error, sink)
    assert part in str(told)
    assert told.field == field
    assert "hunter22" not in str(told)


def test_a_url_is_shown_without_its_properties() -> None:
    assert shown_url("jdbc:sqlserver://db:1433;password=x") == "jdbc:sqlserver://db:1433"
