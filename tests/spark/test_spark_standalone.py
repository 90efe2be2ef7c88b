"""The same pipeline file, unchanged, on a Spark cluster: a master and two workers, each a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from standalone_cluster import CONF, StandaloneCluster, standalone_cluster

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
PARTITIONS, RECORDS = 6, 6_000
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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path) as started:
        yield started


def test_the_same_file_runs_on_a_cluster(
    cluster: StandaloneCluster,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    topic = new_topic(PARTITIONS, "numbers")
    each = RECORDS // PARTITIONS
    for partition in range(PARTITIONS):
        values = [json.dumps({"id": number}).encode() for number in range(partition * each, (partition + 1) * each)]
        produce(topic, values, partition)
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(topic=topic))
    conf = [word for name, value in CONF.items() for word in ("--conf", f"{name}={value}")]
    command = [SSKAFKA, "pipeline", "run", str(file), "-b", bootstrap, "--master", cluster.master, *conf]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(pq.read_table(tmp_path / "out")["id"].to_pylist()) == list(range(RECORDS))
    assert len(list(cluster.workers.glob("*/app-*/*"))) >= 2, "each worker ran an executor"
