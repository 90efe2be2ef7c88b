"""docs/deploy-spark.md on Kubernetes: its command asks the API server for a driver that runs the pipeline."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest
from kubernetes_api import KubernetesApi, kubernetes_api
from standalone_cluster import QUICK_JAVA

from sskafka.pipelines.java import find_java

sys.path.append(str(Path(__file__).resolve().parents[1] / "pages"))

from page import PageRun, blocks

PAGE = "deploy-spark.md"
IN_IMAGE = "/opt/pipelines"
"""The directory that the page's Dockerfile fills."""
DEFAULTS = {
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.kubernetes.submission.waitAppCompletion": "false",
    "spark.ui.enabled": "false",
}


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        yield server


@pytest.fixture
def page(api: KubernetesApi, bootstrap: str, tmp_path: Path) -> Iterator[PageRun]:
    """The page after its example: the files and the topic are there."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {text}\n" for key, text in DEFAULTS.items()))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "JAVA_HOME": str(find_java().home),
        "KUBECONFIG": os.devnull,
        "KUBERNETES": api.address,
        "BOOTSTRAP": bootstrap,
        "LAKE": str(tmp_path / "lake"),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
    }
    with PageRun(tmp_path, environment) as run:
        for block in blocks(PAGE, "The example"):
            run.perform(block)
        yield run


def test_the_pod_of_the_driver_runs_the_pipeline(page: PageRun, api: KubernetesApi, bootstrap: str) -> None:
    (submission,) = [block.text for block in blocks(PAGE, "spark-submit") if block.kind == "run on Kubernetes"]
    page.run(submission)
    assert api.created[0][0] == "/api/v1/namespaces/default/pods"
    pod = api.object_of_kind("Pod")["spec"]
    assert pod["serviceAccountName"] == "spark"
    (container,) = pod["containers"]
    assert container["image"] == "registry/pipelines:1"
    assert_has_secret(pod, container, "orders", "/etc/orders")
    *_, program, file, b, address, var, lake = container["args"]
    assert program == f"local://{IN_IMAGE}/sskafka_pipeline.py"
    assert [file, b, address, var] == [f"{IN_IMAGE}/orders.yaml", "-b", bootstrap, "--var"]
    conf = api.object_of_kind("ConfigMap")["data"]["spark.properties"].splitlines()
    assert {"spark.executor.instances=4", "spark.executor.memory=2g"} <= set(conf)

    run_container(page, container["args"])
    rows = pq.read_table(Path(lake.removeprefix("lake=")) / "orders").to_pydict()
    assert sorted(rows["id"]) == list(range(1, 201))


def assert_has_secret(pod: dict[str, Any], container: dict[str, Any], secret: str, directory: str) -> None:
    """The secret is a volume of the container, and the environment says where."""
    (volume,) = [volume["name"] for volume in pod["volumes"] if volume.get("secret", {}).get("secretName") == secret]
    assert {"mountPath": directory, "name": volume} in container["volumeMounts"]
    assert {"name": "SSKAFKA_SECRETS_DIR", "value": directory} in container["env"]


def run_container(page: PageRun, arguments: list[str]) -> None:
    """Do what Spark's image does with the arguments of a driver, with executors in the driver instead of pods."""
    kind, *rest = arguments
    assert kind == "driver"
    program = next(index for index, word in enumerate(rest) if word.startswith("local://"))
    of_pipeline = " ".join(rest[program + 1 :]).replace(IN_IMAGE, str(page.directory))
    page.run(f"$SPARK_HOME/bin/spark-submit --master 'local[2]' $(sskafka pipeline script) {of_pipeline}")
