"""Which connector a pipeline runs on, where Spark has only ours; tests/interop has both."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sskafka.pipelines.connector.choosing import ConnectorMissingError
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.parse import load_pipeline
from sskafka.pipelines.runner.connectors import check_connector, reader_of
from sskafka.pipelines.runner.plan import resolved_schema
from sskafka.pipelines.runner.run import RunSettings, run_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
name: {topic}
connector: {connector}
sources:
  numbers:
    topic: {topic}
    schema: id long
sinks:
  - console: {{}}
trigger: available-now
"""


@pytest.mark.parametrize("connector", ["auto", "sskafka"])
def test_ours_is_there_without_a_jar(
    connector: str, spark: "SparkSession", new_topic: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(topic=new_topic(1), connector=connector))
    pipeline = load_pipeline(file)
    assert reader_of(spark, pipeline) == "sskafka"
    assert check_connector(spark, pipeline) == ""


def test_sparks_own_without_its_jars_is_told_with_the_next_step(
    spark: "SparkSession", bootstrap: str, session: ClusterSession, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic(1)
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(topic=topic, connector="kafka"))
    pipeline = load_pipeline(file)
    with pytest.raises(ConnectorMissingError, match=r"no jar is configured.*spark.jars.*use connector: sskafka") as run:
        run_pipeline(pipeline, RunSettings(bootstrap, "local[2]"))
    assert "\n" not in str(run.value)
    with pytest.raises(ConnectorMissingError, match="no jar is configured"):
        resolved_schema(spark, pipeline, bootstrap)
