"""A Spark cluster of processes: a master, and two workers that Spark takes for two machines by their addresses."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
from waiting import wait_until

from sskafka.pipelines.java import find_java

QUICK_JAVA = "-XX:TieredStopAtLevel=1"
HOSTS = ("127.0.0.1", "127.0.0.2")
CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""For a program on this cluster."""


class StandaloneCluster(NamedTuple):
    master: str
    workers: Path
    """Where workers keep what executors wrote: a directory for each."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[StandaloneCluster]:
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "JAVA_HOME": str(find_java().home)}
    environment |= {"SPARK_NO_DAEMONIZE": "1", "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA, "SPARK_DAEMON_MEMORY": "256m"}
    workers = directory / "workers"
    with ExitStack() as cleanup:

        def start(host: str, name: str, *arguments: str) -> None:
            command = [Path(pyspark.__file__).parent / "bin" / "spark-class", f"org.apache.spark.deploy.{name}"]
            log = cleanup.enter_context((directory / f"{len(os.listdir(directory))}.log").open("wb"))
            given = ("--host", host, "--webui-port", "0", *arguments)
            process = subprocess.Popen(
                [*command, *given], stdout=log, stderr=log, env={**environment, "SPARK_LOCAL_IP": host}
            )
            cleanup.callback(process.wait)
            cleanup.callback(process.terminate)

        start("127.0.0.1", "master.Master", "--port", str(port))
        wait_until(lambda: is_listening(port), "the master listens", 90)
        for host in HOSTS:
            work = workers / host
            work.mkdir(parents=True)
            start(host, "worker.Worker", "--cores", "1", "--memory", "600m", "--work-dir", str(work), address)
        yield StandaloneCluster(address, workers)
