"""The same pipeline file, unchanged, on a Spark cluster: a master and two workers, each a process of its own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from waiting import wait_until

from sskafka.pipelines.java import find_java

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
PARTITIONS, RECORDS = 6, 6_000
QUICK_JAVA = "-XX:TieredStopAtLevel=1"
FILE = """\
name: {topic}
sources:
  numbers:
    topic: {topic}
    schema: id long not null
    options: {{recordsPerTask: 0}}
sinks:
  - parquet: {{path: out}}
  - topic: {{topic: {topic}-out}}
trigger: available-now
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The master's address, and the directory where workers keep what executors wrote."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_NO_DAEMONIZE": "1", "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA, "SPARK_DAEMON_MEMORY": "256m"}
    workers = tmp_path / "workers"
    with ExitStack() as cleanup:

        def start(name: str, *arguments: str) -> None:
            command = [Path(pyspark.__file__).parent / "bin" / "spark-class", f"org.apache.spark.deploy.{name}"]
            log = cleanup.enter_context((tmp_path / f"{len(os.listdir(tmp_path))}.log").open("wb"))
            process = subprocess.Popen([*command, *arguments], stdout=log, stderr=log, env=environment)
            cleanup.callback(process.wait)
            cleanup.callback(process.terminate)

        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        wait_until(lambda: is_listening(port), "the master listens", 90)
        for number in (1, 2):
            directory = workers / str(number)
            directory.mkdir(parents=True)
            options = ("--cores", "1", "--memory", "600m", "--webui-port", "0", "--work-dir", str(directory))
            start("worker.Worker", *options, address)
        yield address, workers


def test_the_same_file_runs_on_a_cluster(
    standalone: tuple[str, Path],
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    master, workers = standalone
    topic = new_topic(PARTITIONS, "numbers")
    each = RECORDS // PARTITIONS
    for partition in range(PARTITIONS):
        values = [json.dumps({"id": number}).encode() for number in range(partition * each, (partition + 1) * each)]
        produce(topic, values, partition)
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(topic=topic))
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.ui.enabled": "false",
    }
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [SSKAFKA, "pipeline", "run", str(file), "-b", bootstrap, "--master", master, *conf]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(pq.read_table(tmp_path / "out")["id"].to_pylist()) == list(range(RECORDS))
    assert len(list(workers.glob("*/app-*/*"))) >= 2, "each worker ran an executor"
