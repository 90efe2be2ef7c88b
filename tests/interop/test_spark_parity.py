"""Spark's own Kafka connector and ours, side by side: the same options, the same rows, the same refusals.

Every table below is run with both, on the same topics of our brokers. What differs on purpose stands in
docs/pipelines.md and has a test of its own at the end.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from spark_fixtures import append, make_topic
from waiting import wait_until

from sskafka.client.admin import Admin
from sskafka.client.config import ConnectionConfig
from sskafka.client.transactions import add_partitions, end
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.offsets import without_additions
from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import begin
from sskafka.pipelines.runner.retries import start_with_retries
from sskafka.records.compression import Compression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BOTH = ("kafka", "sskafka")
EARLY, LATER = 1_000, 2_000
QUICK = {"kafkaConsumer.pollTimeoutMs": "1000", "fetchOffset.numRetries": "1"}
"""How long Spark's own source waits before it gives up on what is not there."""
WAIT_S = 120


class Topics(NamedTuple):
    """What there is to read; the names go into the options of the tables."""

    numbers: str
    """Three partitions: 0-99 (early), 100-199 (later), 200-299 (early)."""
    rows: str
    """Keys, values and headers that are there, empty or missing; the broker gives the time."""
    transactions: str
    """Committed, aborted, outside of any transaction, committed."""
    cut: str
    """One partition, whose first 40 of 100 records were deleted."""


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


@pytest.fixture(scope="session")
def topics(bootstrap: str) -> Iterator[Topics]:
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        made = Topics(
            make_topic(session, 3, "parity-numbers"),
            make_topic(session, 1, "parity-rows", message_timestamp_type="LogAppendTime"),
            make_topic(session, 1, "parity-transactions"),
            make_topic(session, 1, "parity-cut"),
        )
        append(session, made.numbers, numbers(0, 100), 0, timestamp=EARLY)
        append(session, made.numbers, numbers(100, 200), 1, timestamp=LATER)
        append(session, made.numbers, numbers(200, 300), 2, timestamp=EARLY)
        append(session, made.rows, ODD_ROWS)
        append_in_transaction(session, made.transactions, numbers(0, 10), commit=True)
        append_in_transaction(session, made.transactions, numbers(10, 20), commit=False)
        append(session, made.transactions, numbers(20, 30))
        append_in_transaction(session, made.transactions, numbers(30, 40), commit=True)
        append(session, made.cut, numbers(0, 100))
        session.run(Admin(session.cluster).delete_records({TopicPartition(made.cut, 0): 40}))
        yield made


ODD_ROWS = [
    Row(b"key", b"value"),
    Row(None, b"no key"),
    Row(b"no value", None),
    Row(b"", b""),
    Row(b"\xff\x00", "grüße".encode()),
    Row(b"one", b"header", (("trace", b"1"),)),
    Row(b"several", b"headers", (("a", b"1"), ("a", b"2"), ("empty", b""), ("none", None), ("ü", b"\xff"))),
]


def append_in_transaction(session: ClusterSession, topic: str, values: list[bytes], *, commit: bool) -> None:
    partition = TopicPartition(topic, 0)
    transaction = session.run(begin(session.cluster, f"parity-{topic}", 60_000))
    session.run(add_partitions(session.cluster, transaction, [partition]))
    (payload,) = payloads([Row(None, value) for value in values])
    batch = framed(
        payload,
        timestamp=EARLY,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        base_sequence=0,
        codec=Compression.NONE,
        transactional=True,
    )
    session.run(deliver(session.cluster, {partition: batch}, transaction.transactional_id))
    session.run(end(session.cluster, transaction, commit=commit))


def filled_in(options: Mapping[str, str], topics: Topics) -> dict[str, str]:
    """`<numbers>` in an option is the topic of that name."""
    filled = dict(options)
    for name, topic in topics._asdict().items():
        filled = {option: value.replace(f"<{name}>", topic) for option, value in filled.items()}
    return filled


def read(spark: "SparkSession", connector: str, options: Mapping[str, str]) -> "DataFrame":
    return spark.read.format(connector).options(**options).load()


def rows_of(frame: "DataFrame") -> list[tuple[Any, ...]]:
    return sorted((as_tuple(row.asDict(recursive=True)) for row in frame.collect()), key=lambda row: row[:3])


def as_tuple(row: dict[str, Any]) -> tuple[Any, ...]:
    place = (row["topic"], row["partition"], row["offset"])
    headers = row.get("headers")
    return (
        *place,
        maybe_bytes(row["key"]),
        maybe_bytes(row["value"]),
        row["timestamp"],
        row["timestampType"],
        None if headers is None else [(one["key"], maybe_bytes(one["value"])) for one in headers],
    )


def maybe_bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


READS = [
    {"subscribe": "<numbers>"},
    {"subscribe": " <numbers> , <rows>,<numbers> "},
    {"subscribePattern": "arity-numbe"},
    {"subscribePattern": "^parity-(numbers|rows)-"},
    {"assign": '{"<numbers>": [2, 0]}'},
    {"subscribe": "<rows>", "includeHeaders": "true"},
    {"subscribe": "<rows>", "INCLUDEHEADERS": "True"},
    {"subscribe": "<rows>", "includeHeaders": "false"},
    {"SUBSCRIBE": "<numbers>", "startingoffsets": "EARLIEST", "ENDINGOFFSETS": "Latest"},
    {"subscribe": "<numbers>", "startingOffsets": '{"<numbers>": {"0": 90, "1": -2, "2": 100}}'},
    {"subscribe": "<numbers>", "endingOffsets": '{"<numbers>": {"0": 3, "1": -1, "2": 0}}'},
    {
        "assign": '{"<numbers>": [1]}',
        "startingOffsets": '{"<numbers>": {"1": 5}}',
        "endingOffsets": '{"<numbers>": {"1": 9}}',
    },
    {"subscribe": "<numbers>", "startingTimestamp": "1000"},
    {"subscribe": "<numbers>", "startingTimestamp": "1500", "startingOffsetsByTimestampStrategy": "LATEST"},
    {"subscribe": "<numbers>", "endingTimestamp": "1500"},
    {
        "subscribe": "<numbers>",
        "startingOffsetsByTimestamp": '{"<numbers>": {"0": 1000, "1": 1500, "2": 0}}',
        "endingOffsetsByTimestamp": '{"<numbers>": {"0": 1000, "1": 9999, "2": 9999}}',
    },
    {
        "subscribe": "<numbers>",
        "startingTimestamp": "0",
        "startingOffsetsByTimestamp": '{"<numbers>": {"0": 9999}}',
        "startingOffsets": "nonsense",
    },
    {"subscribe": "<numbers>", "minPartitions": "7"},
    {"subscribe": "<numbers>", "minPartitions": "2"},
    {"subscribe": "<numbers>", "maxRecordsPerPartition": "30"},
    {"subscribe": "<numbers>", "maxRecordsPerPartition": "40", "minPartitions": "12"},
    {"subscribe": "<transactions>", "kafka.isolation.level": "read_committed"},
    {"subscribe": "<transactions>", "kafka.isolation.level": "read_uncommitted"},
    {"subscribe": "<transactions>", "kafka.isolation.level": "read_committed", "minPartitions": "5"},
    {"subscribe": "<cut>"},
    {"subscribe": "<cut>", "startingOffsets": '{"<cut>": {"0": 10}}', "failOnDataLoss": "false"},
    {"subscribe": "<numbers>", "groupIdPrefix": "parity", "kafka.max.poll.records": "7", "fetchOffset.numRetries": "1"},
    {"subscribe": "<numbers>", "maxOffsetsPerTrigger": "7", "kafka.group.id": "parity"},
    {"subscribe": "<numbers>", **QUICK},
]


@pytest.mark.parametrize("options", READS, ids=lambda options: ", ".join(f"{key}={options[key]}" for key in options))
def test_both_read_the_same_rows(
    options: dict[str, str], spark: "SparkSession", bootstrap: str, topics: Topics
) -> None:
    official, ours = (
        read(spark, connector, {BOOTSTRAP: bootstrap, **filled_in(options, topics)}) for connector in BOTH
    )
    assert ours.schema == official.schema
    expected = rows_of(official)
    assert rows_of(ours) == expected
    assert expected, "a table that reads nothing proves nothing"


REFUSED = [
    ({}, "one of them is needed"),
    ({"subscribe": "<numbers>", "assign": '{"<numbers>": [0]}'}, "only one of them"),
    ({"subscribe": ""}, "subscribe"),
    ({"subscribe": " , "}, "subscribe"),
    ({"subscribePattern": " "}, "subscribePattern"),
    ({"subscribePattern": "("}, "subscribePattern"),
    ({"assign": "<numbers>"}, "assign"),
    ({"assign": '{"<numbers>": 1}'}, "assign"),
    ({"subscribe": "no-such-topic-here"}, "there is no topic 'no-such-topic-here'"),
    ({"subscribe": "<numbers>", "startingOffsets": "soon"}, "startingOffsets"),
    ({"subscribe": "<numbers>", "startingOffsets": '{"<numbers>": {"0": "x"}}'}, "startingOffsets"),
    ({"subscribe": "<numbers>", "startingOffsets": "latest"}, "startingOffsets"),
    ({"subscribe": "<numbers>", "startingOffsets": '{"<numbers>": {"0": 1, "1": 1, "2": -1}}'}, "startingOffsets"),
    ({"subscribe": "<numbers>", "startingOffsets": '{"<numbers>": {"0": 1, "1": 1}}'}, "startingOffsets"),
    ({"subscribe": "<rows>", "startingOffsets": '{"<rows>": {"0": 1, "1": 1}}'}, "startingOffsets"),
    ({"subscribe": "<numbers>", "endingOffsets": "earliest"}, "endingOffsets"),
    ({"subscribe": "<rows>", "endingOffsets": '{"<rows>": {"0": -2}}'}, "endingOffsets"),
    (
        {
            "subscribe": "<rows>",
            "startingOffsets": '{"<rows>": {"0": 5}}',
            "endingOffsets": '{"<rows>": {"0": 3}}',
        },
        "would begin at 5",
    ),
    ({"subscribe": "<rows>", "endingOffsets": '{"<rows>": {"0": 500}}'}, "the log ends at 7"),
    ({"subscribe": "<rows>", "startingOffsets": '{"<rows>": {"0": 500}}'}, "failOnDataLoss"),
    ({"subscribe": "<cut>", "startingOffsets": '{"<cut>": {"0": 10}}'}, "begins at 40 now"),
    ({"subscribe": "<numbers>", "startingTimestamp": "yesterday"}, "startingTimestamp"),
    ({"subscribe": "<numbers>", "startingTimestamp": "1500"}, "no record at or after 1500"),
    ({"subscribe": "<numbers>", "startingOffsetsByTimestampStrategy": "maybe"}, "Strategy"),
    ({"subscribe": "<numbers>", "startingOffsetsByTimestamp": '{"<numbers>": {"0": 1}}'}, "ByTimestamp"),
    ({"subscribe": "<numbers>", "minPartitions": "0"}, "minPartitions"),
    ({"subscribe": "<numbers>", "minPartitions": "some"}, "minPartitions"),
    ({"subscribe": "<numbers>", "maxRecordsPerPartition": "0"}, "maxRecordsPerPartition"),
    ({"subscribe": "<numbers>", "minOffsetsPerTrigger": "8", "maxOffsetsPerTrigger": "7"}, "minOffsetsPerTrigger"),
    ({"subscribe": "<numbers>", "failOnDataLoss": "maybe"}, "failOnDataLoss"),
    ({"subscribe": "<numbers>", "includeHeaders": "maybe"}, "includeHeaders"),
    ({"subscribe": "<numbers>", "kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
    ({"subscribe": "<numbers>", "kafka.key.deserializer": "x"}, "key.deserializer"),
    ({"subscribe": "<numbers>", "kafka.value.deserializer": "x"}, "value.deserializer"),
    ({"subscribe": "<numbers>", "kafka.enable.auto.commit": "true"}, "enable.auto.commit"),
    ({"subscribe": "<numbers>", "kafka.interceptor.classes": "x"}, "interceptor.classes"),
    ({"subscribe": "<numbers>", "kafka.isolation.level": "read_everything"}, "isolation.level"),
    ({"subscribe": "<numbers>", "kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
]


@pytest.mark.parametrize(("options", "told"), REFUSED, ids=lambda value: str(value)[:90])
def test_both_refuse(options: dict[str, str], told: str, spark: "SparkSession", bootstrap: str, topics: Topics) -> None:
    given = {BOOTSTRAP: bootstrap, **QUICK, **filled_in(options, topics)}
    with pytest.raises(Exception, match=r"."):
        read(spark, "kafka", given).collect()
    with pytest.raises(Exception, match=told):
        read(spark, "sskafka", given).collect()


class Stream:
    """The same stream with either connector, run by run into Parquet files."""

    def __init__(self, spark: "SparkSession", connector: str, directory: Path, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._connector = connector
        self._directory = directory / connector
        self._options = {"startingOffsets": "earliest", **options}

    def run(self, **changed: str) -> list[tuple[int, Any]]:
        """Reads what is there; the rows and the end of each micro-batch."""
        reader = self._spark.readStream.format(self._connector).options(**{**self._options, **changed})
        writer = reader.load().writeStream.format("parquet").option("path", str(self._directory / "out"))
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoint"))
        query = start_with_retries(writer.trigger(availableNow=True).start)
        assert query.awaitTermination(120), query.status
        reports = [json.loads(report.json) for report in query.recentProgress]
        return [
            (report["numInputRows"], without_ids(report["sources"][0]["endOffset"]))
            for report in reports
            if report["numInputRows"]
        ]

    def rows(self) -> list[tuple[Any, ...]]:
        return rows_of(self._spark.read.parquet(str(self._directory / "out")))


@pytest.fixture
def streams(spark: "SparkSession", bootstrap: str, tmp_path: Path) -> Callable[..., list[Stream]]:
    """One stream with each connector."""

    def both(**options: str) -> list[Stream]:
        return [Stream(spark, connector, tmp_path, {BOOTSTRAP: bootstrap, **options}) for connector in BOTH]

    return both


def test_both_streams_read_the_same_micro_batches(
    streams: Callable[..., list[Stream]], session: ClusterSession
) -> None:
    """Limits, a restart from the checkpoint, a partition that is added."""
    topic = make_topic(session, 3, "parity-stream")
    for partition, count in enumerate((100, 60, 7)):
        append(session, topic, numbers(0, count), partition)
    official, ours = streams(subscribe=topic, maxOffsetsPerTrigger="50")
    batches = official.run()
    assert ours.run() == batches
    assert len(batches) > 2
    session.run(Admin(session.cluster).create_partitions({topic: 4}))
    append(session, topic, numbers(0, 20), 3)
    append(session, topic, numbers(100, 130), 0)
    batches = official.run()
    assert ours.run() == batches
    assert ours.rows() == official.rows()
    assert len(ours.rows()) == 217


def test_both_streams_end_or_go_on_when_data_is_lost(
    streams: Callable[..., list[Stream]], session: ClusterSession
) -> None:
    topic = make_topic(session, 1, "parity-lost")
    append(session, topic, numbers(0, 100))
    official, ours = both = streams(subscribe=topic, **QUICK)
    for stream in both:
        stream.run()
    append(session, topic, numbers(100, 200))
    session.run(Admin(session.cluster).delete_records({TopicPartition(topic, 0): 150}))
    for stream in both:
        with pytest.raises(Exception, match="failOnDataLoss"):
            stream.run()
    for stream in both:
        stream.run(failOnDataLoss="false")
    assert ours.rows() == official.rows()
    assert [int(row[4]) for row in ours.rows()] == [*range(100), *range(150, 200)]


@pytest.mark.parametrize("option", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_neither_stream_has_an_end(option: str, streams: Callable[..., list[Stream]], topics: Topics) -> None:
    for stream in streams(subscribe=topics.numbers, **{option: "latest"}):
        with pytest.raises(Exception, match=r"a stream has no end|not valid in streaming|endingOffsets"):
            stream.run()


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "no-such-topic-here"},
        {"subscribe": "<numbers>", "startingOffsets": '{"<numbers>": {"0": 1, "1": 1}}'},
        {"subscribe": "<numbers>", "startingTimestamp": "1500"},
    ],
    ids=str,
)
def test_neither_stream_starts(options: dict[str, str], streams: Callable[..., list[Stream]], topics: Topics) -> None:
    for stream in streams(**QUICK, **filled_in(options, topics)):
        with pytest.raises(Exception, match=r"no-such-topic-here|UnknownTopic|TopicPartitions|startingOffsets|1500"):
            stream.run()


def test_both_streams_wait_for_enough(
    spark: "SparkSession", bootstrap: str, session: ClusterSession, tmp_path: Path
) -> None:
    """The first batch begins at once; the next has to wait for 30 records, or for an hour."""
    topic = make_topic(session, 2, "parity-wait")
    append(session, topic, numbers(0, 10))
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "100")  # else idle triggers say nothing
    options = {BOOTSTRAP: bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {"minOffsetsPerTrigger": "30", "maxTriggerDelay": "1h"}
    with ExitStack() as running:
        queries = []
        for connector in BOTH:
            writer = spark.readStream.format(connector).options(**options).load().writeStream.format("noop")
            writer = writer.option("checkpointLocation", str(tmp_path / connector))
            queries.append(start_with_retries(writer.trigger(processingTime="100 milliseconds").start))
            running.callback(queries[-1].stop)
        for query in queries:
            wait_until(lambda query=query: progress_of(query) == (10, 10), "the first batch is done", WAIT_S)
        append(session, topic, numbers(10, 30))
        append(session, topic, numbers(30, 39), 1)
        for query in queries:
            wait_until(lambda query=query: progress_of(query) == (10, 39), "29 records are seen and wait", WAIT_S)
        append(session, topic, numbers(39, 40))
        for query in queries:
            wait_until(lambda query=query: progress_of(query) == (40, 40), "the second batch is done", WAIT_S)
            assert [batch for batch in batches_of(query) if batch] == [10, 30]


def progress_of(query: "StreamingQuery") -> tuple[int, int]:
    """How far the query has come, and how far the log reaches, as it last said."""
    failure, last = query.exception(), query.lastProgress
    assert failure is None, failure
    if last is None:
        return 0, 0
    (source,) = json.loads(last.json)["sources"]
    return total(source["endOffset"]), total(source["latestOffset"])


def total(offsets: dict[str, dict[str, int]] | None) -> int:
    return sum(offset for partitions in without_ids(offsets or {}).values() for offset in partitions.values())


def without_ids(offsets: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Our offsets name the topics' ids, too: a topic that was deleted and created again is noticed by that."""
    return without_additions(offsets)


def batches_of(query: "StreamingQuery") -> list[int]:
    return [report.numInputRows for report in query.recentProgress]


def test_both_streams_leave_aborted_records_out(streams: Callable[..., list[Stream]], topics: Topics) -> None:
    official, ours = streams(subscribe=topics.transactions, **{"kafka.isolation.level": "read_committed"})
    official.run(maxOffsetsPerTrigger="7")
    ours.run(maxOffsetsPerTrigger="7")
    assert ours.rows() == official.rows()
    assert [int(row[4]) for row in ours.rows()] == [*range(10), *range(20, 40)]


# Sinks


def write(rows: "DataFrame", connector: str, bootstrap: str, **options: str) -> None:
    rows.write.format(connector).option(BOOTSTRAP, bootstrap).options(**options).mode("append").save()


HEADERS = "array(struct('h' as key, encode(id, 'utf-8') as value), struct('n' as key, cast(null as binary) as value))"
KEYED = "if(id % 5 = 0, null, cast(id % 7 as string)) key"
WRITES = [
    ["cast(id % 7 as string) key", "cast(id as string) value"],
    ["encode(id % 7, 'utf-8') key", "encode(id, 'utf-8') value"],
    ["cast(id % 7 as string) key", "if(id % 3 = 0, null, cast(id as string)) value"],
    ["cast(id % 7 as string) key", "cast(id as string) value", f"if(id % 2 = 0, {HEADERS}, null) headers"],
    [KEYED, "cast(id as string) value", "cast(id % 3 as int) partition"],
    ["cast(id as string) key", "cast(id as string) value", "if(id % 2 = 0, 1, null) partition"],
    ["cast(id as string) key", "cast(id as string) value", "'ignored' topic", "id offset", "current_timestamp() Key"],
]


@pytest.mark.parametrize("columns", WRITES, ids=", ".join)
def test_both_write_the_same_records(
    columns: list[str], spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str]
) -> None:
    found = []
    for connector in BOTH:
        topic = new_topic(3, f"parity-{connector}")
        write(spark.range(60).selectExpr(*columns), connector, bootstrap, topic=topic)
        options = {BOOTSTRAP: bootstrap, "subscribe": topic, "includeHeaders": "true"}
        records = rows_of(read(spark, "sskafka", {**options, "kafka.isolation.level": "read_committed"}))
        found.append(sorted(map(repr, ((record[1], record[3], record[4], record[7]) for record in records))))
    official, ours = found
    assert ours == official
    assert len(ours) == 60


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_each_reads_what_the_other_compressed(
    codec: str, spark: "SparkSession", bootstrap: str, new_topic: Callable[..., str]
) -> None:
    rows = spark.range(500).selectExpr("cast(id as string) key", "repeat(cast(id as string), 20) value")
    for writer, reader in (BOTH, BOTH[::-1]):
        topic = new_topic(1, f"parity-{codec}")
        write(rows, writer, bootstrap, topic=topic, **{"kafka.compression.type": codec})
        found = rows_of(read(spark, reader, {BOOTSTRAP: bootstrap, "subscribe": topic}))
        assert sorted((int(row[3]), row[4]) for row in found) == [(n, str(n).encode() * 20) for n in range(500)]


UNWRITABLE = [
    (["id"], {"topic": "<rows>"}, "the column value is missing"),
    (["cast(id as string) Value"], {"topic": "<rows>"}, "the column value is missing"),
    (["cast(id as string) value"], {}, "topic"),
    (["id value"], {"topic": "<rows>"}, "the column value is bigint"),
    (["cast(id as string) value", "id key"], {"topic": "<rows>"}, "the column key is bigint"),
    (["cast(id as string) value", "id partition"], {"topic": "<rows>"}, "the column partition is bigint"),
    (["cast(id as string) value", "1 topic"], {}, "the column topic is int"),
    (["cast(id as string) value", "cast(null as string) topic"], {}, "a row has no topic"),
    (["cast(id as string) value", "map('a', 'b') headers"], {"topic": "<rows>"}, "the column headers is map"),
    (["cast(id as string) value"], {"topic": "<rows>", "kafka.key.serializer": "x"}, "key.serializer"),
    (["cast(id as string) value"], {"topic": "<rows>", "kafka.value.serializer": "x"}, "value.serializer"),
    (["cast(id as string) value"], {"topic": "<rows>", BOOTSTRAP: ""}, BOOTSTRAP),
]


@pytest.mark.parametrize(("columns", "options", "told"), UNWRITABLE, ids=lambda value: str(value)[:90])
def test_neither_writes(
    columns: list[str],
    options: dict[str, str],
    told: str,
    spark: "SparkSession",
    bootstrap: str,
    topics: Topics,
) -> None:
    for connector, expected in zip(BOTH, (r".", told), strict=True):
        writer = spark.range(3).selectExpr(*columns).write.format(connector).mode("append")
        with pytest.raises(Exception, match=expected):
            writer.options(**{BOOTSTRAP: bootstrap, **filled_in(options, topics)}).save()


def test_neither_overwrites_a_topic(spark: "SparkSession", bootstrap: str, topics: Topics) -> None:
    rows = spark.range(3).selectExpr("cast(id as string) value")
    for connector in BOTH:
        writer = rows.write.format(connector).option(BOOTSTRAP, bootstrap).option("topic", topics.rows)
        with pytest.raises(Exception, match=r"(?i)overwrit"):
            writer.mode("overwrite").save()
