"""An archive of the Java classes that Spark loads, from which Java starts with less work.

    python -m sskafka.pipelines.class_archive        creates it (40 s of CPU time, 160 MB in the user's cache directory)

Spark loads and verifies ten thousand classes before its first micro-batch, which is 40% of the CPU time of its start.
Java can store loaded classes in a file ("class data sharing") and map that file into memory at the next start. The file
is created when Java ends, from the classes that a short streaming query has loaded. Sessions on a local master use it
if it exists.

Java refuses an archive if a directory with files is on its class path, so the directory of Spark's settings must not be
one (`session.prepare_environment`). An archive that does not fit, for instance after an update of Spark, is ignored;
its name contains the versions, so that a fitting one has another name.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from sskafka.pipelines.java import Java, cache_directory, find_java

CREATE_TIMEOUT_S = 600
TRAINING = "SSKAFKA_CLASS_ARCHIVE"
"""The environment variable with the path of the archive, for the child process that creates it."""
MODULE = "sskafka.pipelines.class_archive"
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


class ClassArchiveError(Exception):
    """Java has not created the archive."""


def archive_of(java: Java) -> Path:
    """Return the path of the archive for this Java and the installed Spark, whether or not it exists."""
    program = (java.home / "bin" / "java").resolve()
    fitting = f"{program} {program.stat().st_mtime_ns} {metadata.version('pyspark')} {sys.prefix}"
    digest = hashlib.sha256(fitting.encode()).hexdigest()[:16]
    return cache_directory(os.environ) / f"spark-classes-{digest}.jsa"


def java_options(java: Java) -> str:
    """Return the options by which Java uses the archive, or creates it in a training run; empty if there is none."""
    made = os.environ.get(TRAINING)
    if made:
        return f"-XX:ArchiveClassesAtExit={made} {_QUIET}"
    archive = archive_of(java)
    return f"-XX:SharedArchiveFile={archive} {_QUIET}" if archive.exists() else ""


def create(java: Java) -> Path:
    """Run a training session in a child process, and return the archive that its Java has written."""
    archive = archive_of(java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    made = archive.with_suffix(f".{os.getpid()}")
    try:
        environment = {**os.environ, TRAINING: str(made)}
        subprocess.run([sys.executable, "-m", MODULE, "train"], env=environment, check=True, timeout=CREATE_TIMEOUT_S)
        if not made.exists():
            raise ClassArchiveError(f"{java.home} cannot store classes")
        made.replace(archive)
    finally:
        with suppress(FileNotFoundError):
            made.unlink()
    return archive


def train() -> None:
    """Start Spark and run micro-batches, so that Java loads what pipelines use."""
    from sskafka.pipelines import session  # noqa: PLC0415  it imports this module

    session.STOP_TIMEOUT_S = CREATE_TIMEOUT_S  # Java writes the archive when it ends
    spark = session.start_session(session.SessionSettings("class archive", "local[2]"))
    rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=10, numPartitions=1).load()
    counted = rows.withWatermark("timestamp", "1 second").groupBy("timestamp").count()
    with tempfile.TemporaryDirectory() as directory:
        writers = {
            "files": rows.selectExpr("from_json(cast(value as string), 'a int') as a").writeStream.format("parquet"),
            "windows": counted.writeStream.format("noop"),
        }
        for name, writer in writers.items():
            options = {"path": f"{directory}/{name}", "checkpointLocation": f"{directory}/{name}-checkpoint"}
            query = writer.options(**options).trigger(processingTime="0 seconds").start()
            while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < 1):
                query.awaitTermination(1)
            query.stop()
    session.stop_session()


def main() -> None:
    if sys.argv[1:] == ["train"]:
        train()
        return
    java = find_java()
    archive = archive_of(java)
    sys.stdout.write(f"{archive if archive.exists() else create(java)}\n")


if __name__ == "__main__":
    main()
