"""Whether the directory of a Parquet sink belongs to the checkpoint of its query.

    <checkpoint>/offsets/N          written when Spark begins the batch N
    <directory>/_spark_metadata/N   written when the files of the batch N are complete

Spark skips a batch that the directory lists. A query with a new checkpoint, or with an older copy of it, numbers its
batches from there: it would read records and write none of them until its numbers exceed those of the directory.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from sskafka.pipelines.connector.checkpoint import local_path
from sskafka.pipelines.runner.connectors import is_connect
from sskafka.pipelines.runner.leftovers import COMPACT, LISTS


def foreign_batches(spark: SparkSession, directory: str, checkpoint: str) -> str:
    """Return what is wrong if the directory lists batches that the checkpoint has not begun; empty if there are none.

    The directory is read first: another run may begin and complete batches in the meantime."""
    listed = _newest(spark, f"{directory}/{LISTS}")
    begun = _newest(spark, f"{checkpoint}/offsets")
    if listed <= begun:
        return ""
    state = f"the checkpoint {checkpoint} has begun only {begun}" if begun >= 0 else f"{checkpoint} has no batches"
    return (
        f"{directory} contains the batches up to {listed} of another checkpoint, and {state}: Spark would skip batches "
        "with the same numbers, and their rows would be lost. Use another path, or `sskafka pipeline reset`, which "
        "moves the directory away and starts from the beginning"
    )


def _newest(spark: SparkSession, directory: str) -> int:
    """Return the highest number of a batch among the files of a directory; -1 if there is none."""
    numbers = (name.removesuffix(COMPACT) for name in _names(spark, directory))
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)


def _names(spark: SparkSession, directory: str) -> Iterable[str]:
    """Return the names of files. Spark reads other file systems, with its settings; those of a server are unknown."""
    path = local_path(directory)
    if path is not None:
        return [file.name for file in path.iterdir()] if path.is_dir() else []
    return [] if is_connect(spark) else _names_by_hadoop(spark, directory)


def _names_by_hadoop(spark: SparkSession, directory: str) -> list[str]:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(directory)
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    return [status.getPath().getName() for status in system.listStatus(path)] if system.exists(path) else []
