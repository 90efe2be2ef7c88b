"""A Parquet sink whose directory has the batches of another checkpoint."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.parquet_batches import _names_by_hadoop, foreign_batches
from sskafka.pipelines.runner.run import RunSettings, run_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
name: {name}
sources:
  numbers: {{topic: {topic}, format: text}}
sinks:
  - parquet: {{path: "{path}"}}
trigger: available-now
"""


@pytest.fixture
def run(spark: "SparkSession", bootstrap: str, tmp_path: Path) -> Callable[..., int]:
    """Runs a pipeline and returns the number of rows in its directory."""

    def run_it(topic: str, name: str = "first", path: str = "out") -> int:
        run_pipeline(pipeline_of(tmp_path, topic, name, path), RunSettings(bootstrap, "local[2]"))
        return spark.read.parquet(str(tmp_path / "out")).count()

    return run_it


def pipeline_of(directory: Path, topic: str, name: str, path: str) -> Pipeline:
    file = directory / "numbers.yaml"
    file.write_text(FILE.format(topic=topic, name=name, path=path))
    return load_pipeline(file)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_directory_of_another_checkpoint_is_refused(
    run: Callable[..., int], new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path, scheme: str
) -> None:
    """Spark skipped the batches, and the run ended with exit code 0."""
    topic, path = new_topic(1), f"{scheme}{tmp_path}/out"
    produce(topic, [b"1"])
    assert run(topic, path=path) == 1
    shutil.copytree(tmp_path / "checkpoints" / "first", tmp_path / "older")
    produce(topic, [b"2"])
    assert run(topic, path=path) == 2
    assert run(topic, path=path) == 2  # with nothing to do
    with pytest.raises(
        PipelineRunError, match=r"yaml:5: .*batches up to 1 of another .*/second/parquet has no batches"
    ):
        run(topic, "second", path)
    shutil.rmtree(tmp_path / "checkpoints" / "first")
    shutil.move(tmp_path / "older", tmp_path / "checkpoints" / "first")
    with pytest.raises(PipelineRunError, match="has begun only 0: Spark would skip batches"):
        run(topic, path=path)


def test_other_file_systems_are_read_by_spark(spark: "SparkSession", tmp_path: Path) -> None:
    lists = tmp_path / "out" / "_spark_metadata"
    lists.mkdir(parents=True)
    for name in ("9.compact", "10", ".10.crc"):
        (lists / name).touch()
    assert {"9.compact", "10"} <= set(_names_by_hadoop(spark, lists.as_uri()))
    assert _names_by_hadoop(spark, f"{lists.as_uri()}-missing") == []
    assert "up to 10 of" in foreign_batches(spark, str(tmp_path / "out"), str(tmp_path / "checkpoint"))
