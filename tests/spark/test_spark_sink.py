"""Writing topics with Spark: each record once for readers of committed records, whoever is killed when."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_spark_source import numbers, read, values

from sskafka.client.transactions import list_transactions
from sskafka.pipelines.connector.planning import ClusterSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).parent
RECORDS = 3_000


VISIBLE_WITHIN_S = 30
"""A commit is answered when it is decided; brokers write its markers after that."""


def committed(spark: "SparkSession", bootstrap: str, topic: str, count: int) -> list[int]:
    """What readers of committed records see once there are `count`, or whatever they see in the end."""
    deadline = time.monotonic() + VISIBLE_WITHIN_S
    while True:
        found = values(read(spark, bootstrap, subscribe=topic, kafka__isolation__level="read_committed"))
        if len(found) >= count or time.monotonic() > deadline:
            return found


class TestBatches:
    def write(self, rows: "DataFrame", bootstrap: str, **options: str) -> None:
        writer = rows.write.format("sskafka").option("kafka.bootstrap.servers", bootstrap).mode("append")
        writer.options(**options).save()

    @pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
    def test_rows_become_records(
        self, spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], guarantee: str
    ) -> None:
        topic = new_topic()
        rows = spark.range(500).selectExpr("cast(id % 7 as string) key", "cast(id as string) value").repartition(2)
        self.write(rows, bootstrap, topic=topic, deliveryGuarantee=guarantee)
        assert committed(spark, bootstrap, topic, 500) == list(range(500))
        partitions = read(spark, bootstrap, subscribe=topic).selectExpr("key", "partition").distinct()
        assert partitions.count() == 7  # a key is in one partition

    def test_topics_partitions_and_headers_by_column(
        self, spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str]
    ) -> None:
        first, second = new_topic(), new_topic()
        header = "array(struct('h' as key, cast('x' as binary) as value)) headers"
        rows = spark.range(10).selectExpr(
            "cast(id as string) value", f"if(id < 5, '{first}', '{second}') topic", "2 partition", header
        )
        self.write(rows, bootstrap)
        found = read(spark, bootstrap, subscribe=f"{first},{second}", includeHeaders="true").collect()
        assert sorted((row["topic"], row["partition"]) for row in found) == sorted([(first, 2)] * 5 + [(second, 2)] * 5)
        assert {(row["headers"][0]["key"], bytes(row["headers"][0]["value"])) for row in found} == {("h", b"x")}

    @pytest.mark.parametrize(
        ("columns", "options", "part"),
        [
            (["id"], {"topic": "x"}, "the column value is missing"),
            (["cast(id as string) value"], {}, "there is no column topic either"),
            (["id value"], {"topic": "x"}, "the column value is bigint; it must be binary or string"),
            (["cast(id as string) value"], {"topic": "no-such-topic-here"}, "there is no topic"),
        ],
    )
    def test_what_cannot_be_written_says_why(
        self, spark: "SparkSession", bootstrap: str, columns: list[str], options: dict[str, str], part: str
    ) -> None:
        with pytest.raises(Exception, match=part):
            self.write(spark.range(3).selectExpr(*columns), bootstrap, **options)


class Program:
    """The query in a process of its own."""

    def __init__(self, bootstrap: str, source: str, sink: str, directory: Path) -> None:
        self._arguments = {
            "bootstrap": bootstrap,
            "source": source,
            "sink": sink,
            "checkpoint": str(directory / "checkpoint"),
            "per_batch": str(RECORDS // 3),
        }
        self.log = directory / "program.log"

    def run(self, format_name: str, **options: str) -> int:
        """The exit code. Workers may outlive a JVM that was killed: the whole process group is ended."""
        arguments = json.dumps({**self._arguments, "format": format_name, "options": options})
        path = os.pathsep.join((str(HERE / "killing"), os.environ.get("PYTHONPATH", "")))
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, HERE / "sink_program.py", arguments],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
        try:
            return process.wait(300)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize(
    "step", ["task", "all tasks", "before the intent", "after the intent", "between commits", "done"]
)
def test_each_record_is_there_once_whoever_dies_at(
    step: str,
    spark: "SparkSession",
    bootstrap: str,
    session: ClusterSession,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    source, sink = new_topic(2), new_topic(2)
    for partition in (0, 1):
        half = RECORDS // 2
        produce(source, numbers(partition * half, (partition + 1) * half), partition)
    program = Program(bootstrap, source, sink, tmp_path)
    exit_code = program.run("killing", dieAt=step, dieFile=str(tmp_path / "died"))
    assert (tmp_path / "died").exists(), program.log.read_text()[-3000:]
    assert (exit_code == 0) == (step == "task"), "only a task is run again by Spark itself"
    if step != "task":
        assert program.run("sskafka") == 0, program.log.read_text()[-3000:]
    found = committed(spark, bootstrap, sink, RECORDS)
    assert found == list(range(RECORDS)), session.run(list_transactions(session.cluster))
