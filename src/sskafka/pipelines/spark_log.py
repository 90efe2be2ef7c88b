"""The file of Spark's log. Java creates it with the first line, so a run without problems creates no file."""

import os
import tempfile
from pathlib import Path

VARIABLE = "SSKAFKA_SPARK_LOG"
"""Read by log4j2.properties; users may set it to another path."""


def prepare_log() -> None:
    """Choose a log file for the Java process that is about to start, unless the user has set one."""
    os.environ.setdefault(VARIABLE, str(Path(tempfile.gettempdir()) / f"sskafka-spark-{os.getpid()}.log"))


def written_log() -> Path | None:
    """Return the log file if Spark has written to it."""
    path = Path(os.environ.get(VARIABLE, ""))
    return path if path.is_file() and path.stat().st_size else None
