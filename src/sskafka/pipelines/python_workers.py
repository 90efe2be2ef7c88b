"""The Python of Spark's workers in sessions that were not started by `session.start_session`.

Spark starts its Python workers with PYSPARK_PYTHON, or with the `python3` of the PATH. If a program is run by the path
of its environment's Python (`/path/.venv/bin/python job.py`) and the environment is not activated, neither of them is
that Python: the workers have no connector, and Spark reports that it cannot find the data source `sskafka`.
"""

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS, DRIVER = "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"
CHECK_TIMEOUT_S = 60


class WorkerPythonError(Exception):
    """The Python of Spark's workers does not have the connector."""


def use_this_python() -> None:
    """Make Spark's workers run the same Python as this process, unless PYSPARK_PYTHON names another.

    Call this before the session is started: Spark reads the variable once."""
    from pyspark import SparkContext  # noqa: PLC0415  a second or more

    os.environ.setdefault(WORKERS, sys.executable)
    os.environ.setdefault(DRIVER, os.environ[WORKERS])
    context = SparkContext._active_spark_context
    if context is not None:
        check_python(context.pythonExec)


def register(spark: "SparkSession") -> None:
    """Register the connector with a session; raises WorkerPythonError, which says what to set, if workers cannot load
    it."""
    from sskafka.pipelines.connector.datasource import SSKafkaDataSource  # noqa: PLC0415  needs the extra

    if not type(spark).__module__.startswith("pyspark.sql.connect."):
        check_python(spark.sparkContext.pythonExec)
    spark.dataSource.register(SSKafkaDataSource)


def check_python(executable: str) -> None:
    """Raise WorkerPythonError unless this Python has the connector."""
    found = shutil.which(executable)
    if found is not None and _has_connector(found):
        return
    what = f"{executable} ({found})" if found and found != executable else executable
    raise WorkerPythonError(
        f"Spark's Python workers run {what}, which {'has no sskafka' if found else 'does not exist'}. "
        f"Set the environment variable {WORKERS}={sys.executable} before the program starts, or call "
        "sskafka.pipelines.python_workers.use_this_python() before the session is created"
    )


def _has_connector(executable: str) -> bool:
    if os.path.abspath(executable) == os.path.abspath(sys.executable):
        return True
    command = [executable, "-c", "import pyarrow, sskafka.pipelines.connector.options"]
    return subprocess.run(command, capture_output=True, timeout=CHECK_TIMEOUT_S, check=False).returncode == 0
