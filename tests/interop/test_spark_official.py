"""Pipelines on Spark's own Kafka connector, and what it leaves on our brokers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_spark_parity import numbers

from sskafka.client.groups import list_groups
from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.retries import start_with_retries
from sskafka.pipelines.runner.run import RunSettings, run_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
name: {topic}
connector: {connector}
sources:
  numbers:
    topic: {topic}
    schema: id long not null
sinks:
  - parquet: {{path: out}}
  - topic: {{topic: {topic}-out, guarantee: {guarantee}}}
trigger: available-now
spark:
  spark.jars: {jars}
"""


def committed_values(spark: "SparkSession", bootstrap: str, topic: str) -> list[int]:
    reader = spark.read.format("kafka").option(BOOTSTRAP, bootstrap).option("subscribe", topic)
    rows = reader.option("kafka.isolation.level", "read_committed").load().selectExpr("cast(value as string) value")
    return sorted(json.loads(row["value"])["id"] for row in rows.collect())


@pytest.mark.parametrize(
    ("connector", "guarantee", "writes"),
    [("kafka", "at-least-once", "kafka"), ("auto", "exactly-once", "sskafka"), ("auto", "at-least-once", "kafka")],
)
def test_a_pipeline_runs_on_it(
    connector: str,
    guarantee: str,
    writes: str,
    spark: "SparkSession",
    bootstrap: str,
    official_jars: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    topic = new_topic(2, "official")
    produce(topic, [b'{"id": %s}' % number for number in numbers(0, 40)], 0)
    produce(topic, [b'{"id": %s}' % number for number in numbers(40, 60)], 1)
    produce(topic, [b"not a number"], 1)
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(topic=topic, connector=connector, guarantee=guarantee, jars=official_jars))
    told: list[str] = []
    result = run_pipeline(load_pipeline(file), RunSettings(bootstrap, "local[2]"), tell=told.append)
    (about,) = [text for text in told if "Spark's own connector" in text]
    assert ("at least once" in about) == (writes == "kafka")
    assert result.rows_in == 61
    assert result.dead_letters == 1
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row["id"] for row in found) == list(range(60))
    assert committed_values(spark, bootstrap, f"{topic}-out") == list(range(60))


def test_its_groups_hold_no_offsets_and_ours_do(
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    """Lag of a query shows in Kafka's tools with our connector only; docs/pipelines.md says so."""
    topic = new_topic(1, "groups")
    produce(topic, numbers(0, 10))
    for connector in ("kafka", "sskafka"):
        options: dict[str, Any] = {BOOTSTRAP: bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        rows = spark.readStream.format(connector).options(**options, groupIdPrefix=f"{topic}-{connector}").load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / connector))
        assert start_with_retries(writer.trigger(availableNow=True).start).awaitTermination(120)
    groups = [group.group_id for group in session.run(list_groups(session.cluster)) if topic in group.group_id]
    assert groups == [f"{topic}-sskafka"]
