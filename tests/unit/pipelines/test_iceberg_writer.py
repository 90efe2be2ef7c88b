"""Batches into an Iceberg table: each once, whoever else writes the same one. Spark is a stand-in here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType
from table_rows import Named, Rows, Typed

from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.files.sink import IcebergSink
from sskafka.pipelines.runner.iceberg import COMMIT_ATTEMPTS, IcebergWriter
from sskafka.pipelines.runner.schema_evolution import SchemaChangeError

FILE = """\
name: copy
sources:
  numbers: {{topic: numbers, schema: id long}}
sinks:
  - iceberg:
      table: shop.numbers
      catalog: {{type: sql, uri: "sqlite:///{directory}/catalog.db", warehouse: lake}}
{more}"""


class Shop:
    """A catalog in a directory, and writers to its table."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def writer(self, of_sink: str = "", of_file: str = "") -> IcebergWriter:
        path = self.directory / "copy.yaml"
        more = "".join(f"      {line}\n" for line in of_sink.splitlines()) + of_file
        path.write_text(FILE.format(directory=self.directory, more=more))
        pipeline = load_pipeline(path)
        (sink,) = pipeline.sinks
        assert isinstance(sink, IcebergSink)
        return IcebergWriter(pipeline, sink, "checkpoint")

    def catalog(self) -> Catalog:
        properties = {"type": "sql", "uri": f"sqlite:///{self.directory}/catalog.db", "warehouse": str(self.directory)}
        return load_catalog("default", **properties)

    def rows(self, where: str = "true") -> pa.Table:
        return self.catalog().load_table("shop.numbers").scan(where).to_arrow()

    def numbers(self, where: str = "true") -> list[int]:
        return sorted(self.rows(where)["id"].to_pylist())


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_batch_that_is_run_again_is_left_out(shop: Shop) -> None:
    shop.writer()(Rows(1, 2), 0)
    shop.writer()(Rows(3), 1)
    shop.writer()(Rows(3), 1)
    shop.writer()(Rows(), 2)
    assert shop.numbers() == [1, 2, 3]
    assert (shop.directory / "lake").is_dir()


@pytest.mark.parametrize("batch", [0, 1])
def test_of_two_runs_that_write_a_batch_at_once_one_writes_it(shop: Shop, batch: int) -> None:
    for before in range(batch):
        shop.writer()(Rows(before), before)

    def other_run() -> None:
        shop.writer()(Rows(batch), batch)

    shop.writer()(Rows(batch, meanwhile=other_run), batch)
    assert shop.numbers() == list(range(batch + 1))


def test_a_table_of_another_program_gets_a_batch_of_two_runs_once(shop: Shop) -> None:
    shop.catalog().create_namespace("shop")
    shop.catalog().create_table("shop.numbers", Rows(1).content().schema)
    shop.writer()(Rows(1, meanwhile=lambda: shop.writer()(Rows(1), 0)), 0)
    assert shop.numbers() == [1]
    properties = shop.catalog().load_table("shop.numbers").properties
    assert "commit.retry.num-retries" not in properties, "the other program keeps its retries"


def test_queries_that_write_at_once_both_write_their_batches(shop: Shop) -> None:
    def backfill(*numbers: int) -> Callable[[], None]:
        return lambda: shop.writer("evolve: true")(Named(dict.fromkeys(numbers, "b"), query="backfill"), 0)

    shop.writer()(Rows(1, meanwhile=lambda: shop.writer()(Rows(2, query="other"), 0)), 0)
    shop.writer()(Rows(3, meanwhile=backfill(4)), 1)
    assert shop.numbers() == [1, 2, 3, 4]


def test_a_table_that_refuses_every_commit_ends_the_query(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[list[str]] = []

    def refuse(writer: IcebergWriter, table: object, paths: list[str], batch: int) -> None:
        refused.append(paths)
        raise CommitFailedException

    monkeypatch.setattr(IcebergWriter, "_commit", refuse)
    with pytest.raises(CommitFailedException):
        shop.writer()(Rows(1), 0)
    assert refused == [refused[0]] * COMMIT_ATTEMPTS, "the same files"


def test_two_queries_may_create_the_table_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    create = IcebergWriter._create

    def overtaken(writer: IcebergWriter, *arguments: Any) -> Any:
        monkeypatch.setattr(IcebergWriter, "_create", create)
        shop.writer()(Rows(2, query="other"), 0)
        return create(writer, *arguments)

    monkeypatch.setattr(IcebergWriter, "_create", overtaken)
    shop.writer()(Rows(1), 0)
    assert shop.numbers() == [1, 2]


def test_a_run_that_adds_a_column_notices_that_another_has_written_the_batch(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.writer()(Rows(1), 0)
    evolve = IcebergWriter._evolve

    def overtaken(writer: IcebergWriter, *arguments: Any) -> bool:
        monkeypatch.setattr(IcebergWriter, "_evolve", evolve)
        shop.writer()(Rows(2), 1)
        return evolve(writer, *arguments)

    monkeypatch.setattr(IcebergWriter, "_evolve", overtaken)
    shop.writer("evolve: true")(Named({2: "b"}), 1)
    assert shop.numbers() == [1, 2]


def test_with_a_new_checkpoint_batches_count_anew(shop: Shop) -> None:
    shop.writer()(Rows(1), 5)
    shop.writer()(Rows(2, query="another"), 0)
    assert shop.numbers() == [1, 2]


def test_a_complete_result_replaces_the_rows(shop: Shop) -> None:
    writer = shop.writer(of_file="output_mode: complete\n")
    writer(Rows(1, 2), 0)
    writer(Rows(3), 1)
    assert shop.numbers() == [3]
    writer(Rows(), 2)
    writer(Rows(), 3)
    assert shop.numbers() == []


def test_partitions_may_have_any_value(shop: Shop) -> None:
    names = {1: "a", 2: "b c/d=e%20", 3: None, 4: "ü", 5: "a"}
    shop.writer("partition_by: name")(Named(names), 0)
    assert shop.numbers() == sorted(names)
    assert shop.numbers("name = 'ü'") == [4]
    assert shop.numbers("name is null") == [3]


def test_partitions_may_be_any_double_except_nan(shop: Shop) -> None:
    values = [None, 1.5, 0.0, -0.0, float("inf")]
    shop.writer("partition_by: value")(Typed(DoubleType(), pa.array(values)), 0)
    assert list(map(str, shop.rows().sort_by("id")["value"].to_pylist())) == list(map(str, values))
    assert (shop.numbers("value is null"), shop.numbers("value = 0.0"), shop.numbers("value > 1")) == (
        [0],
        [2, 3],
        [1, 4],
    )
    with pytest.raises(ValueError, match=r"shop\.numbers is partitioned by value, and rows have NaN"):
        shop.writer("partition_by: value")(Typed(DoubleType(), pa.array([float("nan")])), 1)
    assert len(shop.numbers()) == len(values)


def test_a_partition_of_the_text_nan_is_no_number(shop: Shop) -> None:
    shop.writer("partition_by: name")(Named({1: "NaN"}), 0)
    assert shop.numbers("name = 'NaN'") == [1]


def test_a_new_column_is_refused_unless_the_sink_evolves(shop: Shop) -> None:
    shop.writer()(Rows(1), 0)
    with pytest.raises(SchemaChangeError, match=r"the Iceberg table shop\.numbers has no column name"):
        shop.writer()(Named({2: "b"}), 1)
    shop.writer("evolve: true")(Named({2: "b"}), 1)
    shop.writer()(Rows(3), 2)
    assert sorted((row["id"], row["name"]) for row in shop.rows().to_pylist()) == [(1, None), (2, "b"), (3, None)]


def test_a_type_is_changed_only_if_the_sink_evolves_and_all_values_fit(shop: Shop) -> None:
    shop.writer()(Typed(IntegerType(), pa.array([5], pa.int32())), 0)
    large = Typed(LongType(), pa.array([2**40], pa.int64()))
    with pytest.raises(SchemaChangeError, match=r"the column value with the type int, .* with the type bigint\. Cast"):
        shop.writer()(large, 1)
    shop.writer("evolve: true")(large, 1)
    with pytest.raises(SchemaChangeError, match=r"the column value with the type bigint, .* with the type string"):
        shop.writer("evolve: true")(Typed(StringType(), pa.array(["five"])), 2)
    shop.writer()(Typed(IntegerType(), pa.array([6], pa.int32())), 2)
    assert sorted(shop.rows()["value"].to_pylist()) == [5, 6, 2**40]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text.replace("shop.numbers", "numbers"), "is not a namespace and a table, such as sales.orders"),
        (lambda text: text + "output_mode: update\n", "Iceberg tables take append and complete"),
    ],
)
def test_mistakes_in_the_file_are_named(shop: Shop, change: Callable[[str], str], expected: str) -> None:
    path = shop.directory / "copy.yaml"
    path.write_text(change(FILE.format(directory=shop.directory, more="")))
    with pytest.raises(PipelineFileError, match=expected):
        load_pipeline(path)
