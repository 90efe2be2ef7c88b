"""Steps: tables made of tables in one file, and sinks that choose among them."""

from pathlib import Path

import pytest

from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.expectation import Action
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.transform import PythonTransform, SqlTransform
from sskafka.pipelines.runner.plan import graph

TEXT = """\
name: shop
sources:
  orders: {topic: orders, schema: "id long not null, user string, amount double"}
  users: {topic: users, schema: "user string, country string"}
steps:
  large:
    sql: select * from orders where amount > 100
    expectations: [{name: has_user, check: user is not null, action: drop}]
  by_country:
    sql: select large.*, country from large join users on large.user = users.user
sinks:
  - parquet: {path: out}
  - topic: {topic: large-orders, from: large}
"""


def load(tmp_path: Path, text: str = TEXT) -> Pipeline:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    return load_pipeline(path)


def problem(tmp_path: Path, old: str, new: str) -> str:
    with pytest.raises(PipelineFileError) as failure:
        load(tmp_path, TEXT.replace(old, new))
    return str(failure.value)


def test_the_last_step_is_the_result_unless_a_transformation_makes_it(tmp_path: Path) -> None:
    pipeline = load(tmp_path)
    assert [step.name for step in pipeline.steps] == ["large", "by_country"]
    assert pipeline.steps[0].expectations[0].action is Action.DROP
    assert pipeline.transform == SqlTransform("select * from by_country")
    assert [sink.table for sink in pipeline.sinks] == ["", "large"]
    with_transform = load(tmp_path, f"{TEXT}transform: {{sql: select id from large}}\n")
    assert with_transform.transform == SqlTransform("select id from large")


def test_a_step_can_be_a_function(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def large(spark, tables):\n    return tables['orders']\n")
    pipeline = load(tmp_path, TEXT.replace("sql: select * from orders where amount > 100", "python: mine.py:large"))
    assert pipeline.steps[0].transform == PythonTransform("mine.py", "large")


def test_the_graph_shows_what_each_table_is_made_of(tmp_path: Path) -> None:
    lines = list(graph(load(tmp_path)))
    assert "orders ── SQL ──> large" in lines
    assert "    expects has_user (user is not null), else drop" in lines
    assert "users, large ── SQL ──> by_country" in lines
    assert "by_country ── SQL ──> result" in lines
    assert "result ── append ──> parquet out" in lines
    assert "large ── append ──> topic large-orders (exactly-once)" in lines


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  large:\n", "  orders:\n", "there is a source 'orders' already; give the step another name"),
        ("  large:\n", "  lar-ge:\n", "'lar-ge' cannot be a table's name in SQL"),
        (
            "sql: select * from orders where",
            "sql: select * from by_country where",
            "reads none of the sources and steps",
        ),
        ("    sql: select * from orders where amount > 100\n", "", "steps.large: needs either sql or python"),
        ("from: large}", "from: lage}", "is from 'lage', which is no table; there are orders, users, large"),
        ("action: drop", "action: dlq", "dlq is for expectations of a source"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert expected in problem(tmp_path, old, new)
