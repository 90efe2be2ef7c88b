"""Where Spark's Python workers come from."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_are_forked_from_a_process_that_has_imported_the_connector(spark: "SparkSession") -> None:
    def parents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            command = Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\0", " ")
            yield pa.RecordBatch.from_pydict({"command": [command] * batch.num_rows})

    commands = {row.command for row in spark.range(2).mapInArrow(parents, "command string").collect()}
    assert commands
    assert all("sskafka.pipelines.worker_daemon pyspark.worker" in command for command in commands)
