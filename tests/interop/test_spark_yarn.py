"""docs/deploy-spark.md on YARN: its command sends a pipeline, its functions and its packages to a cluster with HDFS."""

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from benchmarks.maven import UnavailableError
from mini_hadoop import MiniHadoop, mini_hadoop
from page import PageRun, blocks

from sskafka.pipelines.java import find_java
from sskafka.pipelines.shipped.reading import committed_records

PAGE = "deploy-spark.md"
REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS_MAX = 1_500
"""Almost all of it for pip, which fills the environment that is sent."""
PASSED_ON = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH")
QUICK_JAVA = "-XX:TieredStopAtLevel=1"
DEFAULTS = {
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.driver.memory": "600m",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
}
"""What the page leaves to the cluster; here it saves memory and keeps all connections on this machine."""
MORE = (
    'for id in $(seq 201 260); do echo "{\\"id\\": $id, \\"user\\": \\"anna\\"}"; done | sskafka topic produce orders'
)


@pytest.fixture
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniHadoop]:
    try:
        with mini_hadoop(tmp_path_factory.mktemp("hadoop")) as cluster:
            yield cluster
    except UnavailableError as reason:
        pytest.skip(f"Apache Hadoop is not available: {reason}")


@pytest.fixture
def page(hadoop: MiniHadoop, bootstrap: str, tmp_path: Path) -> Iterator[PageRun]:
    """The page after its example, with the packages in an archive."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {text}\n" for key, text in DEFAULTS.items()))
    passed = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("PIP_")}
    environment = {
        **passed,
        "PATH": f"{Path(sys.executable).parent}:{passed['PATH']}",
        "JAVA_HOME": str(find_java().home),
        "BOOTSTRAP": bootstrap,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "HADOOP_CONF_DIR": str(hadoop.configuration),
        "LAKE": f"{hadoop.files}/lake",
        "SSKAFKA": str(REPOSITORY),
    }
    with PageRun(tmp_path, environment) as run:
        for block in blocks(PAGE, "The example"):
            run.perform(block)
        run.perform(next(block for block in blocks(PAGE, "spark-submit") if block.kind == "run"))
        yield run


@pytest.mark.timeout(SECONDS_MAX)
def test_a_driver_in_the_cluster_and_then_one_outside_write_each_row_once(
    page: PageRun, hadoop: MiniHadoop, bootstrap: str
) -> None:
    (submission,) = [block.text for block in blocks(PAGE, "spark-submit") if block.kind == "run on YARN"]
    page.run(submission)
    assert_each_once(hadoop, bootstrap, 200)
    page.run(f"{MORE} -b $BOOTSTRAP")
    here = "export PYSPARK_DRIVER_PYTHON=environment/bin/python PYSPARK_PYTHON=./environment/bin/python\n"
    page.run(here + submission.replace("--deploy-mode cluster", "--deploy-mode client"))
    assert_each_once(hadoop, bootstrap, 260)


def assert_each_once(hadoop: MiniHadoop, bootstrap: str, count: int) -> None:
    """In HDFS and in the topic; every row was written by the Python that was sent."""
    names = [name for name in hadoop.names("/lake/orders") if name.endswith(".parquet")]
    tables = [pq.read_table(io.BytesIO(hadoop.read(f"/lake/orders/{name}"))) for name in names]
    rows = [row for table in tables for row in table.to_pylist()]
    copies = [json.loads(value or b"") for _, value in committed_records(bootstrap, "orders-clean")]
    once = Counter(range(1, count + 1))
    assert Counter(row["id"] for row in rows) == Counter(row["id"] for row in copies) == once
    pythons = {Path(row["python"]) for row in (*rows, *copies)}
    assert all(python.name == "environment" and python.parent.name.startswith("container_") for python in pythons)
