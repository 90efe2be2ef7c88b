"""Reading topics with Spark: every way to say where, restarts, limits, and what happens when data is gone."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from waiting import wait_until

from sskafka.client.admin import Admin, NewTopic
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.errors import DataLossError
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.progress import committed_progress
from sskafka.pipelines.runner.retries import start_with_retries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NOBODY = "127.0.0.1:9"


def read(spark: "SparkSession", bootstrap: str, **options: str) -> "DataFrame":
    reader = spark.read.format("sskafka").option("kafka.bootstrap.servers", bootstrap)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), value)
    return reader.load()


def values(rows: "DataFrame") -> list[int]:
    return sorted(int(row["value"]) for row in rows.select("value").collect())


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


@pytest.fixture
def filled(new_topic: Callable[..., str], produce: Callable[..., None]) -> str:
    """Three partitions: 0-99 (early), 100-199 (later), 200-299 (early)."""
    topic = new_topic()
    produce(topic, numbers(0, 100), 0, timestamp=1000)
    produce(topic, numbers(100, 200), 1, timestamp=2000)
    produce(topic, numbers(200, 300), 2, timestamp=1000)
    return topic


class TestBatches:
    def test_all_of_a_topic_with_the_official_columns(self, spark: "SparkSession", bootstrap: str, filled: str) -> None:
        rows = read(spark, bootstrap, subscribe=filled, includeHeaders="true")
        assert rows.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
        assert values(rows) == list(range(300))
        first = rows.filter("partition = 1 and offset = 5").collect()[0]
        assert (first["topic"], bytes(first["value"]), first["key"], first["headers"]) == (filled, b"105", None, None)
        assert (first["timestamp"].timestamp(), first["timestampType"]) == (2.0, 0)

    def test_offsets_times_and_assignments(self, spark: "SparkSession", bootstrap: str, filled: str) -> None:
        offsets = f'{{"{filled}": {{"0": 90, "1": -2, "2": 100}}}}'
        ends = f'{{"{filled}": {{"0": -1, "1": 10, "2": -1}}}}'
        by_offset = read(spark, bootstrap, subscribe=filled, startingOffsets=offsets, endingOffsets=ends)
        assert values(by_offset) == [*range(90, 110)]
        latest = {"startingOffsetsByTimestampStrategy": "latest"}
        by_time = read(spark, bootstrap, subscribe=filled, startingTimestamp="1500", **latest)
        assert values(by_time) == list(range(100, 200))
        assigned = read(spark, bootstrap, assign=f'{{"{filled}": [2]}}')
        assert values(assigned) == list(range(200, 300))
        assert values(read(spark, bootstrap, subscribePattern=f"{filled[2:]}$")) == list(range(300))

    def test_many_tasks_or_few(self, spark: "SparkSession", bootstrap: str, filled: str) -> None:
        assert read(spark, bootstrap, subscribe=filled).rdd.getNumPartitions() == 1
        assert read(spark, bootstrap, subscribe=filled, recordsPerTask="0").rdd.getNumPartitions() == 3
        split = read(spark, bootstrap, subscribe=filled, minPartitions="9")
        assert split.rdd.getNumPartitions() == 9
        assert values(split) == list(range(300))

    @pytest.mark.parametrize(
        ("options", "part"),
        [
            ({"subscribe": "no-such-topic-here"}, "there is no topic 'no-such-topic-here'"),
            ({"subscribe": "x", "startingOffset": "earliest"}, "did you mean startingOffsets"),
            ({"subscribe": "x", "startingOffsets": "soon"}, "option startingOffsets"),
            ({"subscribe": "x", "kafka.security.protocol": "SSH"}, "expected one of PLAINTEXT"),
            ({"subscribe": "x", "kafka.isolation.levl": "read_committed"}, "did you mean isolation.level"),
            ({}, "one of them is needed"),
        ],
    )
    def test_what_cannot_be_read_says_why(
        self, spark: "SparkSession", bootstrap: str, options: dict[str, str], part: str
    ) -> None:
        with pytest.raises(Exception, match=part):
            read(spark, bootstrap, **options).count()

    def test_a_schema_that_a_topic_cannot_have(self, spark: "SparkSession", bootstrap: str, filled: str) -> None:
        reader = spark.read.format("sskafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", filled)
        with pytest.raises(Exception, match="cannot be changed to id, name"):
            reader.schema("id int, name string").load().count()

    @pytest.mark.parametrize(
        ("start", "end", "told", "left"),
        [
            (10, -1, "offsets 10 to 100 were to be read, but the log begins at 40 now", range(40, 100)),
            (10, 20, "offsets 10 to 20 were to be read, but the log begins at 40 now", ()),
            (50, 500, "offsets 50 to 500 were to be read, but the log ends at 100", range(50, 100)),
            (500, -1, "offsets 500 to 100 were to be read, but the log ends before them", ()),
        ],
    )
    def test_offsets_that_are_not_there(
        self,
        spark: "SparkSession",
        bootstrap: str,
        filled: str,
        session: ClusterSession,
        start: int,
        end: int,
        told: str,
        left: Iterable[int],
    ) -> None:
        """At once: nobody waits for records that will not come."""
        session.run(Admin(session.cluster).delete_records({TopicPartition(filled, 0): 40}))
        options = {"assign": f'{{"{filled}": [0]}}', "startingOffsets": f'{{"{filled}": {{"0": {start}}}}}'}
        options["endingOffsets"] = f'{{"{filled}": {{"0": {end}}}}}'
        with pytest.raises(Exception, match=f"{told}.*failOnDataLoss=false"):
            read(spark, bootstrap, **options).count()
        assert values(read(spark, bootstrap, **options, failOnDataLoss="false")) == list(left)

    def test_records_that_age_out_while_a_task_reads(
        self, bootstrap: str, filled: str, session: ClusterSession
    ) -> None:
        """They were there when the query was planned."""
        part = OffsetRange(TopicPartition(filled, 0), 0, 100)
        session.run(Admin(session.cluster).delete_records({part.partition: 40}))
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": filled}
        with pytest.raises(DataLossError, match="offsets 0 to 100 were to be read, but the log begins at 40 now"):
            list(read_ranges(source_options(given, streaming=False), [part]))
        patient = source_options({**given, "failOnDataLoss": "false"}, streaming=False)
        found = [offset for batch in read_ranges(patient, [part]) for offset in batch.column("offset").to_pylist()]
        assert found == list(range(40, 100))

    def test_brokers_that_are_down_are_named_at_once(self, spark: "SparkSession") -> None:
        with pytest.raises(Exception, match=r"cannot connect to 127\.0\.0\.1:9: connection refused"):
            read(spark, NOBODY, subscribe="x").count()


class Stream:
    """A stream into Parquet files, run by run."""

    def __init__(self, spark: "SparkSession", bootstrap: str, topic: str, directory: Path) -> None:
        self._spark = spark
        self._options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        self._directory = directory

    def run(self, **options: str) -> "StreamingQuery":
        reader = self._spark.readStream.format("sskafka")
        for name, value in {**self._options, **options}.items():
            reader = reader.option(name, value)
        writer = reader.load().writeStream.format("parquet").option("path", str(self._directory / "out"))
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoint"))
        query = start_with_retries(writer.trigger(availableNow=True).start)
        query.awaitTermination(120)
        return query

    def start_from_latest(self, write: Callable[["DataFrame", int], None]) -> "StreamingQuery":
        """Start a query with the same checkpoint, which waits for records and calls a function with each batch."""
        reader = self._spark.readStream.format("sskafka").options(**{**self._options, "startingOffsets": "latest"})
        writer = reader.load().writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", str(self._directory / "checkpoint")).start()

    def values(self) -> list[int]:
        return values(self._spark.read.parquet(str(self._directory / "out")))


class TestStreams:
    @pytest.fixture
    def stream(self, spark: "SparkSession", bootstrap: str, filled: str, tmp_path: Path) -> Stream:
        return Stream(spark, bootstrap, filled, tmp_path)

    def test_limits_restarts_and_the_group_that_shows_progress(
        self, stream: Stream, filled: str, produce: Callable[..., None], session: ClusterSession
    ) -> None:
        query = stream.run(maxOffsetsPerTrigger="120", groupIdPrefix=f"g-{filled}")
        batches = [report["numInputRows"] for report in query.recentProgress if report["numInputRows"]]
        assert len(batches) == 3
        assert max(batches) <= 123
        produce(filled, numbers(300, 350), 1)
        stream.run(groupIdPrefix=f"g-{filled}")
        assert stream.values() == list(range(350))
        partitions = [TopicPartition(filled, number) for number in range(3)]
        committed = session.run(committed_progress(session.cluster, f"g-{filled}", partitions))
        assert list(committed.values()) == [100, 150, 100]

    def test_a_first_batch_from_the_latest_offsets_that_has_failed_is_read_again(
        self, stream: Stream, filled: str, produce: Callable[..., None]
    ) -> None:
        """Spark stores where the batch ends. When it repeats the batch, `latest` is an offset after that."""

        def fail(_rows: "DataFrame", _batch: int) -> None:
            raise RuntimeError("the first batch fails")

        query = stream.start_from_latest(fail)
        with pytest.raises(Exception, match="the first batch fails"):
            query.awaitTermination(60)
        produce(filled, numbers(300, 310), 0)
        stream.run(startingOffsets="latest")
        produce(filled, numbers(310, 320), 1)
        stream.run(startingOffsets="latest")
        assert stream.values() == list(range(300, 320))

    def test_partitions_that_are_added_are_read_from_their_start(
        self, stream: Stream, filled: str, produce: Callable[..., None], session: ClusterSession
    ) -> None:
        stream.run()
        session.run(Admin(session.cluster).create_partitions({filled: 4}))
        produce(filled, numbers(300, 310), 3)
        stream.run()
        assert stream.values() == list(range(310))

    @pytest.mark.parametrize("fail", [True, False])
    def test_records_that_aged_out(
        self, stream: Stream, filled: str, produce: Callable[..., None], session: ClusterSession, fail: bool
    ) -> None:
        stream.run()
        produce(filled, numbers(300, 400), 0)
        session.run(Admin(session.cluster).delete_records({TopicPartition(filled, 0): 150}))
        if fail:
            with pytest.raises(Exception, match=r"offsets 100 to 200 .* begins at 150 now.*failOnDataLoss=false"):
                stream.run()
        else:
            stream.run(failOnDataLoss="false")
            assert stream.values() == [*range(300), *range(350, 400)]

    @pytest.mark.parametrize("fail", [True, False])
    @pytest.mark.parametrize(("start", "told"), [(10, "begins at 40 now"), (500, "ends before them")])
    def test_a_start_that_is_not_there(
        self, stream: Stream, filled: str, session: ClusterSession, start: int, told: str, fail: bool
    ) -> None:
        session.run(Admin(session.cluster).delete_records({TopicPartition(filled, 0): 40}))
        begin = f'{{"{filled}": {{"0": {start}, "1": -2, "2": -1}}}}'
        if fail:
            with pytest.raises(Exception, match=f"{told}.*failOnDataLoss=false"):
                stream.run(startingOffsets=begin)
        else:
            stream.run(startingOffsets=begin, failOnDataLoss="false")
            assert stream.values() == [*(range(40, 100) if start < 100 else ()), *range(100, 200)]

    @pytest.mark.parametrize("count", [10, 150], ids=["shorter", "longer than the checkpoint"])
    def test_a_topic_that_was_made_again(
        self, stream: Stream, filled: str, produce: Callable[..., None], session: ClusterSession, count: int
    ) -> None:
        """Offsets of the old one mean nothing: the query ends, or begins at the start of the new one."""
        stream.run()
        admin = Admin(session.cluster)
        session.run(admin.delete_topics([filled]))
        wait_until(lambda: filled not in {view.name for view in session.run(admin.list_topics())}, "it is deleted")
        session.run(admin.create_topics([NewTopic(filled, 3, configs={"retention.ms": "-1"})]))
        produce(filled, numbers(500, 500 + count))
        with pytest.raises(Exception, match=r"deleted and created again: the 300 offsets.*failOnDataLoss=false"):
            stream.run()
        stream.run(failOnDataLoss="false")
        produce(filled, numbers(500 + count, 505 + count))
        stream.run(failOnDataLoss="false")
        assert stream.values() == [*range(300), *range(500, 505 + count)]

    def test_a_topic_that_is_not_there(self, spark: "SparkSession", bootstrap: str, tmp_path: Path) -> None:
        with pytest.raises(Exception, match="there is no topic 'no-such-topic-here'"):
            Stream(spark, bootstrap, "no-such-topic-here", tmp_path).run()


def test_a_stream_has_no_end(spark: "SparkSession", bootstrap: str) -> None:
    options: dict[str, Any] = {"kafka.bootstrap.servers": bootstrap, "subscribe": "x", "endingOffsets": "latest"}
    with pytest.raises(Exception, match="a stream has no end"):
        spark.readStream.format("sskafka").options(**options).load().writeStream.format(
            "noop"
        ).start().awaitTermination(60)
