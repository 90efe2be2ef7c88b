"""The same pipeline file, unchanged, on a Spark Connect server: a process of its own, which this one is a client of."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from standalone_cluster import free_port, is_listening
from waiting import wait_until

from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.java import find_java
from sskafka.pipelines.runner.dead_letters import DeadLetters
from sskafka.pipelines.shipped.reading import delta_rows, parquet_rows, topic_rows

pytest.importorskip("grpc_status", reason="Spark Connect needs the extra `connect`")

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
RECORDS = 1_000
FILE = """\
name: {topic}
sources:
  orders:
    topic: {topic}
    schema: id long not null, user string
transform:
  python: steps.py:shouted
sinks:
  - parquet: {{path: out}}
  - delta: {{path: table}}
  - topic: {{topic: {topic}-out, key: user}}
trigger: available-now
spark:
  spark.jars: of-no-use-to-a-server-that-runs.jar
"""
STEPS = """\
from pyspark.sql import functions as sf


@sf.udf("string")
def shout(text):
    return text.upper()


def shouted(spark, sources):
    return sources["orders"].withColumn("user", shout("user"))
"""


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose Python is this one."""
    port = free_port()
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path)
    try:
        wait_until(lambda: is_listening(port) or process.poll() is not None, "the server listens", 120)
        assert process.poll() is None, (tmp_path / "server.log").read_text()[-2000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def test_the_same_file_runs_on_a_connect_server(
    connect_server: str,
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    topic = new_topic(2, "connect")
    for partition in (0, 1):
        users = [json.dumps({"id": number, "user": "ann"}).encode() for number in range(partition, RECORDS, 2)]
        produce(topic, users, partition)
    produce(topic, [b"not JSON"])
    (tmp_path / "steps.py").write_text(STEPS)
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(topic=topic))
    command = [SSKAFKA, "pipeline", "run", str(file), "-b", bootstrap, "--master", connect_server]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{(tmp_path / 'server.log').read_text()[-2000:]}"
    assert "settings that only the server can change are ignored: spark.jars" in done.stderr
    assert f"{RECORDS + 1} rows read" in done.stderr
    assert "Warning" not in done.stderr
    pipeline, everything = load_pipeline(file), list(range(RECORDS))
    parquet = parquet_rows(pipeline)
    assert sorted(row["id"] for row in parquet) == everything
    assert {row["user"] for row in parquet} == {"ANN"}
    assert sorted(row["id"] for row in delta_rows(pipeline)) == everything
    assert sorted(row["id"] for row in topic_rows(pipeline, bootstrap)) == everything
    letters = DeadLetters(session, bootstrap, pipeline.dead_letter_topic).waiting()
    assert [letter.value for letter in letters] == [b"not JSON"]
