"""A Spark session that is ready for pipelines: Java found, workers on this interpreter, settings that suit streams.

pyspark is imported here and below only when a session is asked for.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sskafka.pipelines.java import Java, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]

STOP_TIMEOUT_S = 20

DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.streaming.stopTimeout": "60000",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
LOCAL_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
}


class SparkMissingError(Exception):
    """pyspark is not installed."""

    def __init__(self) -> None:
        super().__init__("pipelines need Spark: `pip install 'sskafka[spark]'` brings it, without any jar")


class SparkSettingError(Exception):
    """A Spark setting that pipelines cannot live with."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    app_name: str = "sskafka"
    master: str = ""
    """As Spark's --master; empty: all cores of this machine."""
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen_master(self) -> str:
        return self.master or os.environ.get("SSKAFKA_SPARK_MASTER", "local[*]")

    @property
    def is_local(self) -> bool:
        return self.chosen_master.startswith("local")

    def all_conf(self) -> dict[str, str]:
        """What the session is built with; the user's own settings win."""
        return {**DEFAULTS, **(LOCAL_DEFAULTS if self.is_local else {}), **self.conf}


def start_session(settings: SessionSettings, tell: Tell = lambda _: None) -> "SparkSession":
    """Starts Spark, or takes the session that runs already, telling each stage: this takes 5 to 20 seconds."""
    if find_spec("pyspark") is None:
        raise SparkMissingError
    check_conf(settings.all_conf())
    began = time.monotonic()
    if not settings.chosen_master.startswith("sc://"):  # Spark Connect: the Java is at the other end
        tell("looking for Java")
        java = find_java()
        tell(f"Java {java.version} from {java.origin}")
        prepare_environment(java, settings)
    tell(f"starting Spark on {settings.chosen_master}")
    session = _build(settings)
    tell(f"Spark {session.version} is ready after {time.monotonic() - began:.1f} s")
    return session


def stop_session() -> None:
    """Stops Spark, and returns when its process is gone; nothing to do where none was started here."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext  # noqa: PLC0415  it is there
    from pyspark.sql import SparkSession  # noqa: PLC0415  see above

    gateway = SparkContext._gateway
    if gateway is None:
        return
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    gateway.shutdown()
    process = gateway.proc  # pyspark started it, and would end it only when Python ends
    process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


def java_exit_code(wait_s: float = 0) -> int | None:
    """How the Java process that was started here has ended; None when it still lives then, or there is none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext  # noqa: PLC0415  it is there

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    try:
        return None if process is None else process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return None


def check_conf(conf: Mapping[str, str]) -> None:
    if conf.get("spark.speculation", "false").lower() == "true":
        raise SparkSettingError(
            "spark.speculation=true runs a task twice at once; both would write with one transactional id. Use false"
        )


def prepare_environment(java: Java, settings: SessionSettings) -> None:
    """What the launcher and the workers read. Workers must run the very interpreter that runs this."""
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if settings.is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))


def _build(settings: SessionSettings) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415  a second or more

    if settings.chosen_master.startswith("sc://"):
        builder = SparkSession.builder.remote(settings.chosen_master)
    else:
        builder = SparkSession.builder.master(settings.chosen_master)
    builder = builder.appName(settings.app_name)
    for key, value in settings.all_conf().items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
