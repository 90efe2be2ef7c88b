"""Filters of batch reads narrow what is fetched, and never the answer."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from spark_fixtures import Produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENABLED = "spark.sql.python.filterPushdown.enabled"
RECORDS = 100
PARTITIONS = 3
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def topic_of() -> dict[str, str]:
    """The topic that all tests here read, once it is there."""
    return {}


@pytest.fixture
def topic(topic_of: dict[str, str], new_topic: Callable[..., str], produce: Produce) -> str:
    """Records of a partition are a day younger each, but for the last one, which is as old as the first."""
    if not topic_of:
        name = topic_of["name"] = new_topic(PARTITIONS)
        for partition in range(PARTITIONS):
            for offset in range(RECORDS):
                day = offset if offset < RECORDS - 1 else 0
                produce(name, [b"%d" % offset], partition, timestamp=day * DAY_MS)
    return topic_of["name"]


def read(spark: "SparkSession", bootstrap: str, topic: str, condition: str) -> "DataFrame":
    records = spark.read.format("sskafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return records.load().where(condition).select("partition", "offset")


def answer_and_fetched(rows: "DataFrame") -> tuple[list[tuple[int, int]], int]:
    found = sorted((row.partition, row.offset) for row in rows.collect())
    scan = rows._jdf.queryExecution().executedPlan().collectLeaves().apply(0)  # type: ignore[operator]
    return found, int(scan.metrics().apply("numOutputRows").value())


@pytest.mark.parametrize(
    ("condition", "fetched"),
    [
        ("partition = 1", RECORDS),
        ("offset >= 90 and offset < 95", 5 * PARTITIONS),
        ("partition in (0, 2) and offset = 7", 2),
        ("topic like 'no-such%'", 0),
        ("timestamp >= timestamp'1970-03-02 00:00:00'", (RECORDS - 60) * PARTITIONS),
        ("timestamp < timestamp'1970-01-02 00:00:00'", RECORDS * PARTITIONS),
        ("offset in (3, 5) and value = '5'", 3 * PARTITIONS),
        ("partition = 1 or offset = 3", RECORDS * PARTITIONS),
    ],
)
def test_less_is_fetched_and_the_answer_is_the_same(
    spark: "SparkSession", bootstrap: str, topic: str, condition: str, fetched: int
) -> None:
    pushed, records = answer_and_fetched(read(spark, bootstrap, topic, condition))
    assert records == fetched
    spark.conf.set(ENABLED, "false")
    try:
        plain, all_records = answer_and_fetched(read(spark, bootstrap, topic, condition))
    finally:
        spark.conf.set(ENABLED, "true")
    assert all_records == RECORDS * PARTITIONS
    assert pushed == plain
