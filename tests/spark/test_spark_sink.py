"""Writing topics with Spark: each record once for readers of committed records, whoever is killed when."""

import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster_processes import ClusterProcesses
from pipeline_process import SSKAFKA
from pyspark.sql import functions as sf
from sink_process import RECORDS, VISIBLE_WITHIN_S, SinkProgram, assert_each_once_whoever_dies
from test_spark_source import numbers, read, values
from waiting import wait_until

from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.topic_batches import TopicBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OTHER_TASK_DONE_S = 5


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


@pytest.mark.parametrize(
    ("step", "who"),
    [
        ("task", "worker"),
        ("after the intent", "java"),
        pytest.param("between commits", "driver", marks=pytest.mark.long),
    ],
)
def test_each_record_is_there_once_whoever_dies(step: str, who: str, program: SinkProgram) -> None:
    assert_each_once_whoever_dies(program, step, who)


@pytest.mark.parametrize(
    ("step", "who"),
    [("task", "worker"), pytest.param("task", "java", marks=pytest.mark.long), ("between commits", "driver")],
)
def test_rows_in_the_transaction_of_the_driver_are_there_once_whoever_dies(
    step: str, who: str, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path
) -> None:
    """Batches of one task: the first one is written as usual, and the last one in the driver's transaction."""
    source, sink = new_topic(1), new_topic(2)
    produce(source, numbers(0, RECORDS))
    program = SinkProgram(bootstrap, source, sink, tmp_path)
    assert_each_once_whoever_dies(program, step, who, dieBatch="2")
    assert program.was_handed_over


@pytest.fixture
def program(bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path) -> SinkProgram:
    source, sink = new_topic(2), new_topic(2)
    half = RECORDS // 2
    for partition in (0, 1):
        produce(source, numbers(partition * half, (partition + 1) * half), partition)
    return SinkProgram(bootstrap, source, sink, tmp_path)


def test_a_driver_that_sleeps_in_its_first_batch_wakes_up_beside_a_newer_run(program: SinkProgram) -> None:
    older = program.start_until("before the intent", dieBatch="0")
    try:
        assert program.run() == 0, program.talk()
        program.resume()
        assert older.wait(120) != 0, "it has written everything, though a newer run had taken over"
    finally:
        older.close()
    assert program.committed() == list(range(RECORDS))
    assert "a newer run of the query" in program.talk()
    assert program.run() == 0, program.talk()


def test_brokers_that_pause_right_behind_the_decision(program: SinkProgram, brokers: ClusterProcesses | None) -> None:
    """The commit fails, Spark aborts the batch, and that must not happen: it is decided."""
    if brokers is None:
        pytest.skip("the brokers are not ours to pause")
    pids = ",".join(str(brokers.pid(node)) for node in brokers.node_ids)
    quick = {"kafka.default.api.timeout.ms": "5000", "kafka.request.timeout.ms": "2000"}
    program.run_until_death("after the intent", "brokers", brokers=pids, pauseSeconds="16", **quick)
    assert program.run() == 0, program.talk()
    assert program.committed() == list(range(RECORDS))


def test_a_batch_that_takes_longer_than_the_transaction_timeout_is_written_again(
    program: SinkProgram, session: ClusterSession
) -> None:
    """The task has written its rows and sleeps until brokers have aborted its transaction."""
    run = program.start_until("task", dieBatch="0", transactionTimeoutMs="6000")
    try:
        wait_until(lambda: not program.open_transactions(session), "the transactions have timed out", 60)
        program.resume()
        assert run.wait(120) != 0, "a batch was committed whose transactions had timed out"
        run.wait_until_gone()
    finally:
        run.close()
    assert "is no longer open" in program.talk()
    assert program.run() == 0, program.talk()
    assert program.committed() == list(range(RECORDS))


def test_speculation_is_refused_before_spark_starts(
    bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic()
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"name: {topic}\nsources: {{rows: {{topic: {topic}, format: text}}}}\nsinks: [{{topic: {{topic: x}}}}]\n"
    )
    command = [SSKAFKA, "pipeline", "run", str(file), "-b", bootstrap, "--conf", "spark.speculation=true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "error: spark.speculation=true runs tasks twice at once" in done.stderr
    assert "Java" not in done.stderr


@pytest.mark.parametrize(
    ("step", "who"),
    [
        pytest.param("task", "driver", marks=pytest.mark.long),
        ("between commits", "java"),
        pytest.param("done", "driver", marks=pytest.mark.long),
    ],
)
def test_each_update_of_a_window_is_there_once_whoever_dies(
    step: str, who: str, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path
) -> None:
    """Output mode update, which Spark allows for foreachBatch alone."""
    source, sink = new_topic(2), new_topic(2)
    half = RECORDS // 2
    for partition in (0, 1):
        produce(source, numbers(partition * half, (partition + 1) * half), partition)
    program = SinkProgram(bootstrap, source, sink, tmp_path, mode="update")
    assert program.run_until_death(step, who) != 0
    assert program.run() == 0, program.talk()
    expected = sorted((start, count) for start in range(0, 100, 10) for count in (100, 200, 300))
    found = [tuple(map(int, value.split())) for value in program.committed_values(len(expected))]
    assert sorted(found) == expected


def test_a_query_of_update_mode_is_started_again_with_the_same_writer(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path
) -> None:
    source, sink, place, is_mended = new_topic(2), new_topic(2), str(tmp_path / "checkpoint"), tmp_path / "mended"
    for partition in (0, 1):
        produce(source, numbers(partition * 10, partition * 10 + 10), partition)

    @partial(sf.udf, returnType="string", useArrow=False)
    def checked(value: bytearray) -> str:
        if value == b"15" and not is_mended.exists():
            time.sleep(OTHER_TASK_DONE_S)
            raise ValueError("this task fails")
        return value.decode()

    reader = spark.readStream.format("sskafka").options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": source})
    rows = reader.options(startingOffsets="earliest", recordsPerTask="0").load().select(checked("value").alias("value"))
    options = {"kafka.bootstrap.servers": bootstrap, "topic": sink, "checkpointLocation": place}
    writer = rows.writeStream.outputMode("update").foreachBatch(TopicBatches(options)).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", place)
    with pytest.raises(Exception, match="this task fails"):
        writer.start().awaitTermination()
    is_mended.touch()
    writer.start().awaitTermination()
    assert committed(spark, bootstrap, sink, 20) == list(range(20))


def test_spark_itself_refuses_update_mode_and_the_error_names_it(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    """If this fails, Spark has learned it: then the detour by foreachBatch is no longer needed."""
    topic = new_topic(1)
    stream = spark.readStream.format("sskafka").options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": topic})
    counts = stream.load().groupBy("value").count().selectExpr("cast(count as string) as value")
    writer = counts.writeStream.outputMode("update").format("sskafka").option("kafka.bootstrap.servers", bootstrap)
    query = writer.option("topic", topic).option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(Exception, match="sskafka does not support Update mode"):
        query.awaitTermination()


class Copying:
    """A query that copies a topic, run by run, with a checkpoint that a test may replace."""

    def __init__(self, spark: "SparkSession", bootstrap: str, source: str, sink: str) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._source = source
        self._sink = sink

    def run(self, checkpoint: Path, name: str = "copying") -> None:
        options = {"kafka.bootstrap.servers": self._bootstrap, "subscribe": self._source}
        reader = self._spark.readStream.format("sskafka").options(**options, startingOffsets="earliest")
        writer = reader.load().select("value").writeStream.format("sskafka").queryName(name)
        writer = writer.option("kafka.bootstrap.servers", self._bootstrap).option("topic", self._sink)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()

    def committed(self, count: int) -> list[int]:
        return committed(self._spark, self._bootstrap, self._sink, count)


def test_a_checkpoint_that_is_a_batch_old_or_a_copy_is_refused(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path
) -> None:
    """Spark plans the last batch again, with the records that have arrived since; dropping it would lose them."""
    source, checkpoint, backup = new_topic(1), tmp_path / "checkpoint", tmp_path / "backup"
    copying = Copying(spark, bootstrap, source, new_topic(1))
    produce(source, numbers(0, 10))
    copying.run(checkpoint)
    shutil.copytree(checkpoint, backup)
    produce(source, numbers(10, 20))
    copying.run(checkpoint)

    produce(source, numbers(20, 30))
    with pytest.raises(Exception, match="one is a copy of the other"):
        copying.run(backup)
    newest = tmp_path / "newest"
    checkpoint.rename(newest)
    backup.rename(checkpoint)
    with pytest.raises(Exception, match="the checkpoint is older than the output or a copy"):
        copying.run(checkpoint)
    shutil.rmtree(checkpoint)
    newest.rename(checkpoint)
    copying.run(checkpoint)
    assert copying.committed(30) == list(range(30))


def test_two_jobs_with_one_query_name_do_not_disturb_each_other(
    spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path
) -> None:
    jobs = [Copying(spark, bootstrap, new_topic(1), new_topic(1)) for _ in range(2)]
    for first in (0, 10):
        for job in jobs:
            produce(job._source, numbers(first, first + 10))
            job.run(tmp_path / job._sink, "one-name")
    assert [job.committed(20) for job in jobs] == [list(range(20))] * 2
