"""A Spark session for pipelines: finds Java, runs workers with this interpreter, and has settings for streams.

pyspark is imported only when a session is created.
"""

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sskafka.model.extras import install_extra
from sskafka.pipelines import class_archive, local_files
from sskafka.pipelines.java import Java, cache_directory, find_java
from sskafka.pipelines.master import check_master
from sskafka.pipelines.spark_log import prepare_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]

STOP_TIMEOUT_S = 20
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The environment variable in which spark-submit passes the port of Java."""
JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The environment variable from which Spark's launcher takes options for Java."""
CONNECT, CONNECT_PORT, CONNECT_TIMEOUT_S = "sc://", 15002, 10
SESSION_SETTINGS = "spark.sql."
CONNECT_PACKAGES = {"grpcio": "grpc", "grpcio-status": "grpc_status", "zstandard": "zstandard"}

AT_LAUNCH = (
    "spark.master", "spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.submit.", "spark.kerberos.",
    "spark.log.", "spark.yarn.dist.",
)  # fmt: skip
"""Beginnings of the settings that Spark's launcher needs. They are arguments of Java, which every user of the machine
can read in /proc; all other settings, which may be secrets, are made through the connection to Java."""

DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.streaming.stopTimeout": "60000",
    "spark.ui.showConsoleProgress": "false",
}
CASE_CONF = {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
"""For test cases of pipelines: a case has a few rows, and one task is faster than several."""
CLUSTER_DEFAULTS = {"spark.log.level": "ERROR"}
"""In a local session, log4j2.properties sets the level, without a message from Spark."""
LATE_OPTIMIZING = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Ten times the thresholds of Java's optimizing compiler. While Spark starts, this compiler uses half of Java's CPU
time for code that runs for seconds. Loops over rows still reach the thresholds, slightly later."""
FOR_SHORT_BATCHES = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.ui.explainMode": "simple",
}
"""For micro-batches with few rows, whose time is spent on Spark's planning: without Java's optimizing compiler, which
shares the cores with it, and without the counters that code has until it is optimized. Batches take two thirds of the
time; the code that processes rows stays slower. Spark describes the plan of every batch for its web page; the short
description takes 2 ms less."""
LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""How Spark writes the files of checkpoints on local disks. Its default starts the program `readlink` for each file and
each rename: dozens of processes in a batch. This class renames as safely without it."""
UNIX_SOCKETS = {"spark.python.unix.domain.socket.enabled": "true"}
"""How Java and Python workers talk on one machine. Over TCP every task lost 40 ms: Java writes a task in two small
pieces, and the second one waits until the worker's kernel acknowledges the first."""
LOCAL_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": LATE_OPTIMIZING,
    "spark.python.daemon.module": "sskafka.pipelines.worker_daemon",
    **UNIX_SOCKETS,
}


class SparkMissingError(Exception):
    """pyspark is not installed."""

    def __init__(self) -> None:
        super().__init__(f"pipelines need Spark, and no jar: {install_extra('spark')}")


class ConnectMissingError(Exception):
    """A package that Spark Connect needs is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"Spark Connect (sc://...) needs {package}: {install_extra('spark,connect')}")


class ConnectServerError(Exception):
    """No Spark Connect server responds."""


class SparkSettingError(Exception):
    """Pipelines do not work with this Spark setting."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    app_name: str = "sskafka"
    master: str = ""
    """Spark's --master; empty: all cores of this machine."""
    conf: Mapping[str, str] = field(default_factory=dict)
    local_checkpoints: bool = True
    """Whether the checkpoints of a session on a local master are on local disks."""
    has_short_batches: bool = False
    """Whether micro-batches follow each other without a pause, so that they are small."""

    @property
    def is_submitted(self) -> bool:
        """Whether spark-submit has started this process: Java is running, and the options of spark-submit name the
        master."""
        return SUBMITTED in os.environ and not self.master

    @property
    def chosen_master(self) -> str:
        """The master; empty if spark-submit has set it."""
        if self.is_submitted:
            return ""
        return self.master or os.environ.get("SSKAFKA_SPARK_MASTER", "local[*]")

    @property
    def is_local(self) -> bool:
        return self.chosen_master.startswith("local")

    @property
    def is_connect(self) -> bool:
        """Whether this process is a client of a Spark Connect server, which has Java, workers and most settings."""
        return self.chosen_master.startswith(CONNECT)

    def all_conf(self) -> dict[str, str]:
        """Return the settings of the session; those of the user override defaults."""
        checkpoints = LOCAL_CHECKPOINTS if self.is_local and self.local_checkpoints else {}
        java = FOR_SHORT_BATCHES if self.is_local and self.has_short_batches else {}
        defaults = LOCAL_DEFAULTS if self.is_local else CLUSTER_DEFAULTS
        conf = {**DEFAULTS, **defaults, **java, **checkpoints, **self.conf}
        return {name: conf[name] for name in conf if name not in self.left_to_the_server(conf)}

    def launch_conf(self) -> dict[str, str]:
        """Return the settings with which Java is started; the session gets all of them."""
        conf = {"spark.master": self.chosen_master, **self.all_conf()}
        return {name: value for name, value in conf.items() if name.startswith(AT_LAUNCH)}

    def left_to_the_server(self, conf: Mapping[str, str]) -> list[str]:
        """Return the settings that a Spark Connect server reads when it starts: a client cannot change them."""
        return [name for name in conf if self.is_connect and not name.startswith(SESSION_SETTINGS)]


def start_session(settings: SessionSettings, tell: Tell = lambda _: None) -> "SparkSession":
    """Start Spark, or return the running session. `tell` reports each stage, because this takes 5 to 20 seconds."""
    if find_spec("pyspark") is None:
        raise SparkMissingError
    check_conf(settings.all_conf())
    began = time.monotonic()
    if settings.is_submitted:
        tell("starting Spark with the options of spark-submit")
    elif settings.is_connect:
        check_connect(settings.chosen_master)
        os.environ.setdefault("SPARK_CONNECT_RELEASE_SESSION_ON_EXIT", "true")  # otherwise servers keep it for an hour
        tell(f"connecting to Spark at {settings.chosen_master}")
        left = settings.left_to_the_server(settings.conf)
        if left:
            tell(f"settings that only the server can change are ignored: {', '.join(left)}")
    else:
        check_master(settings.chosen_master)
        tell("looking for Java")
        java = _early_java[-1] if _early_java else find_java()
        tell(f"Java {java.version} from {java.origin}")
        prepare_environment(java, settings)
        tell(f"starting Spark on {settings.chosen_master}")
    session = _build(settings)
    check_conf({"spark.speculation": session.conf.get("spark.speculation", "false") or "false"})
    tell(f"Spark {session.version} is ready after {time.monotonic() - began:.1f} s")
    return session


_early_java: list[Java] = []
"""The Java that `launch_java_early` has found. A second search would find the JAVA_HOME that it has set."""


def launch_java_early(settings: SessionSettings) -> None:
    """Start Java in the background for a later `start_session`, which uses the process or waits for it.

    Errors are left to `start_session`, which tries again. Java ends when this process does."""
    if not (settings.is_connect or settings.is_submitted) and find_spec("pyspark") is not None:
        threading.Thread(target=_launch_java, args=(settings,), name="spark-java", daemon=True).start()


def _launch_java(settings: SessionSettings) -> None:
    with suppress(Exception):
        check_conf(settings.all_conf())
        check_master(settings.chosen_master)
        if not _early_java:
            _early_java.append(find_java())
        prepare_environment(_early_java[-1], settings)
        _ensure_java(settings)


_importing = threading.Lock()


def _import_pyspark() -> None:
    """Import pyspark in one thread at a time.

    If one thread imports `pyspark` while another one imports `pyspark.sql`, each waits for the other, and Python gives
    one of them a module that is not complete."""
    with _importing:
        import_module("pyspark.sql")


def _ensure_java(settings: SessionSettings) -> None:
    """Start Java if it is not running; waits for another thread that starts it."""
    _import_pyspark()
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  half a second

    conf = SparkConf()
    for key, value in settings.launch_conf().items():
        conf.set(key, value)
    SparkContext._ensure_initialized(conf=conf)


def stop_session() -> None:
    """Stop Spark, and return when its process has ended; does nothing if it was not started here."""
    if "pyspark" not in sys.modules:
        return
    _import_pyspark()
    from pyspark import SparkContext  # noqa: PLC0415  it is installed
    from pyspark.sql import SparkSession  # noqa: PLC0415  see above

    if java_exit_code() is not None:  # nothing answers any more
        return
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    gateway = SparkContext._gateway
    if gateway is None:
        return
    process = gateway.proc  # pyspark started it, and would end it only when Python ends
    if process is None:  # spark-submit started it, and it waits for Python to end
        return
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


def java_exit_code(wait_s: float = 0) -> int | None:
    """Return the exit code of the Java process that was started here; None if it is still running or there is none."""
    if "pyspark" not in sys.modules:
        return None
    _import_pyspark()
    from pyspark import SparkContext  # noqa: PLC0415  it is installed

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    try:
        return None if process is None else process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return None


def check_connect(address: str) -> None:
    """Raise at once if the server cannot be reached: Spark's client would retry for minutes."""
    for package, module in CONNECT_PACKAGES.items():
        if find_spec(module) is None:
            raise ConnectMissingError(package)
    url = urlsplit(address)
    try:
        host, port = url.hostname or "localhost", url.port or CONNECT_PORT
        socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise ConnectServerError(
            f"no Spark Connect server responds at {address}: {error}. "
            "Spark's sbin/start-connect-server.sh starts one; its Python needs sskafka[spark]"
        ) from error


def check_conf(conf: Mapping[str, str]) -> None:
    if conf.get("spark.speculation", "false").lower() == "true":
        raise SparkSettingError(
            "spark.speculation=true runs tasks twice at once: sinks write records twice and abort one copy. Use false"
        )


def prepare_environment(java: Java, settings: SessionSettings) -> None:
    """Set what the launcher and the workers read. Workers must run the same interpreter as this process."""
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if settings.is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if "SPARK_CONF_DIR" not in os.environ:
            os.environ["SPARK_CONF_DIR"] = str(cache_directory(os.environ) / "no-spark-conf")
            os.environ.setdefault("LOG4J_CONFIGURATION_FILE", str(Path(__file__).parent / "log4j2.properties"))
            _add_java_options(class_archive.java_options(java))
        prepare_log()


def _add_java_options(options: str) -> None:
    """Add options for the Java process that is about to start; `spark.driver.extraJavaOptions` belongs to users."""
    before = os.environ.get(JAVA_OPTIONS, "")
    if options not in before:
        os.environ[JAVA_OPTIONS] = f"{before} {options}".strip()


def _build(settings: SessionSettings) -> "SparkSession":
    _import_pyspark()
    from pyspark.sql import SparkSession  # noqa: PLC0415  a second or more

    _keep_pyspark_from_printing_errors()
    builder = SparkSession.builder.appName(settings.app_name)
    if settings.is_connect:
        builder = builder.remote(settings.chosen_master)
    elif not settings.is_submitted:
        _ensure_java(settings)  # otherwise pyspark would start it with all settings of the builder
        builder = builder.master(settings.chosen_master)
    submitted = _submitted_conf() if settings.is_submitted else {}
    for key, value in {**_local_files_conf(settings), **settings.all_conf()}.items():
        if key in settings.conf or key not in submitted:
            builder = builder.config(key, value)
    return builder.getOrCreate()


def _local_files_conf(settings: SessionSettings) -> dict[str, str]:
    """Return the settings for files on local disks; they can be made only before the session exists."""
    from pyspark import SparkContext  # noqa: PLC0415  see above

    if not settings.is_local or SparkContext._active_spark_context is not None:
        return {}
    return local_files.install(SparkContext._jvm)


def _submitted_conf() -> dict[str, str]:
    """Return the settings of spark-submit. They override defaults, and the file overrides them."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  see above

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _keep_pyspark_from_printing_errors() -> None:
    """Keep pyspark from printing the stack traces of Java and Python for each error that it raises."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415  see above

    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
