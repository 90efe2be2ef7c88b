"""docs/deploy-spark.md: its commands run with an environment in which nothing is installed but what they install."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from page import Block, PageRun, blocks, free_port

from sskafka.client.errors import UnknownTopicError
from sskafka.pipelines.java import find_java
from sskafka.pipelines.shipped.reading import committed_records

PAGE = "deploy-spark.md"
REPOSITORY = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
ORDERS = list(range(1, 201))
QUICK_JAVA = "-XX:TieredStopAtLevel=1"
PASSED_ON = ("HOME", "LANG", "LD_LIBRARY_PATH")
"""Beside what pip needs to reach PyPI."""


@pytest.fixture(scope="module")
def bare_environment(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """On the path: Python without packages, and the command `sskafka`, which finds its own."""
    tools = tmp_path_factory.mktemp("tools")
    (tools / "sskafka").symlink_to(Path(sys.executable).with_name("sskafka"))
    passed = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("PIP_")}
    java = str(find_java().home)
    return {
        **passed,
        "PATH": f"{tools}:{sys.base_prefix}/bin:{java}/bin:/usr/bin:/bin",
        "JAVA_HOME": java,
        "BOOTSTRAP": bootstrap,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_PORT": free_port(),
        "CONNECT_PORT": free_port(),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "SSKAFKA": str(REPOSITORY),
        "SSKAFKA_PYTHON": sys.executable,
    }


@pytest.fixture(scope="module")
def page(bare_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageRun]:
    """The page after its example: the files and the topic are there."""
    with PageRun(tmp_path_factory.mktemp("page"), bare_environment) as run:
        for block in blocks(PAGE, "The example"):
            run.perform(block)
        yield run


def test_a_cluster_with_installed_and_with_shipped_packages(page: PageRun, bootstrap: str) -> None:
    before = count_of_copies(bootstrap)
    for block in (*blocks(PAGE, "Spark standalone"), *blocks(PAGE, "spark-submit")):
        page.perform(block)
        if is_submission(block):
            assert_standalone_refuses_cluster_mode(page, block)
    assert set(pythons_that_wrote(page, "installed")) == {sys.prefix}
    unpacked = {Path(python).relative_to(page.directory / "work") for python in pythons_that_wrote(page, "shipped")}
    assert all(python.name == "environment" for python in unpacked), unpacked
    assert len(list((page.directory / "work").glob("*/app-*"))) == 4, "each run had executors on both workers"
    assert count_of_copies(bootstrap) - before == 2 * len(ORDERS)


def test_a_connect_server(page: PageRun, bootstrap: str) -> None:
    before = count_of_copies(bootstrap)
    for block in blocks(PAGE, "Spark Connect"):
        page.perform(block)
    assert set(pythons_that_wrote(page, "connect")) == {sys.prefix}
    assert count_of_copies(bootstrap) - before == len(ORDERS)


def pythons_that_wrote(page: PageRun, way: str) -> list[str]:
    """Where the Python of the executors was, row by row; the rows are those of the example."""
    rows = pq.read_table(page.directory / "lake" / way / "orders").to_pydict()
    assert sorted(rows["id"]) == ORDERS
    assert set(rows["user"]) == {"ANNA"}
    found: list[str] = rows["python"]
    return found


def count_of_copies(bootstrap: str) -> int:
    """How many records the runs have written to the topic; none before the first."""
    try:
        return sum(1 for _ in committed_records(bootstrap, "orders-clean"))
    except UnknownTopicError:
        return 0


def is_submission(block: Block) -> bool:
    return block.kind == "run" and "spark-submit" in block.text


def assert_standalone_refuses_cluster_mode(page: PageRun, submission: Block) -> None:
    page.run(submission.text.replace("--deploy-mode client", "--deploy-mode cluster"), fails=True)
    assert "Cluster deploy mode is currently not supported for python applications on standalone" in page.printed
