"""The file that Spark's log is written to. Java makes it with its first line, so a run without trouble leaves none."""

import os
import tempfile
from pathlib import Path

VARIABLE = "SSKAFKA_SPARK_LOG"
"""Read by conf/log4j2.properties; users may set it to a path of their own."""


def prepare_log() -> None:
    """Choose a file for the log of the Java process that is about to start, unless the user has chosen one."""
    os.environ.setdefault(VARIABLE, str(Path(tempfile.gettempdir()) / f"sskafka-spark-{os.getpid()}.log"))


def written_log() -> Path | None:
    """The log file, if Spark has written anything to it."""
    path = Path(os.environ.get(VARIABLE, ""))
    return path if path.is_file() and path.stat().st_size else None
