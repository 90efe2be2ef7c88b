from typing import Any

import pytest

from sskafka.pipelines.connector.selection import (
    ConnectorMissingError,
    ServerLacksConnectorError,
    is_missing,
    reading_connector,
    writing_connector,
)
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.transform import SqlTransform
from sskafka.pipelines.runner.connectors import check_connector

NONE = {"spark.jars": "", "spark.jars.packages": ""}
JAR = {"spark.jars": "/jars/x.jar,/jars/spark-sql-kafka-0-10_2.13-4.2.0.jar", "spark.jars.packages": ""}
PACKAGE = {"spark.jars": "", "spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"}
OTHER = {"spark.jars": "/jars/postgresql.jar", "spark.jars.packages": ""}


@pytest.mark.parametrize(
    ("wanted", "jars", "reads", "writes_once", "writes_at_least_once"),
    [
        ("auto", NONE, "sskafka", "sskafka", "sskafka"),
        ("auto", OTHER, "sskafka", "sskafka", "sskafka"),
        ("auto", JAR, "kafka", "sskafka", "kafka"),
        ("auto", PACKAGE, "kafka", "sskafka", "kafka"),
        ("sskafka", JAR, "sskafka", "sskafka", "sskafka"),
        ("kafka", NONE, "kafka", "kafka", "kafka"),
        ("kafka", JAR, "kafka", "kafka", "kafka"),
    ],
)
def test_the_choice(wanted: str, jars: dict[str, str], reads: str, writes_once: str, writes_at_least_once: str) -> None:
    assert reading_connector(wanted, jars) == reads
    assert writing_connector(wanted, jars, "exactly-once") == writes_once
    assert writing_connector(wanted, jars, "at-least-once") == writes_at_least_once


def test_what_is_missing_is_told_with_the_next_step() -> None:
    assert "no jar is configured" in str(ConnectorMissingError(NONE))
    assert "although spark.jars=/jars/x.jar" in str(ConnectorMissingError(JAR))
    assert "--conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION" in str(
        ConnectorMissingError(JAR)
    )


def test_only_sparks_own_words_for_it_count() -> None:
    assert is_missing(Exception("[KAFKA_DATA_SOURCE_NOT_ENABLED] The Kafka data source is not enabled"))
    assert not is_missing(Exception("[TABLE_OR_VIEW_NOT_FOUND] no such table"))


class Lacking:
    """A session that has no connector: whatever is asked of its reader, loading fails."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, said: str) -> None:
        self._said = said

    def __getattr__(self, _: str) -> "Lacking":
        return self

    def __call__(self, *_: str) -> "Lacking":
        return self

    def get(self, _: str, default: str) -> str:
        return default

    def load(self) -> None:
        raise RuntimeError(self._said)


def test_a_connect_server_may_lack_our_connector() -> None:
    pipeline = Pipeline("p", (), (), SqlTransform(""))
    server: Any = Lacking("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: sskafka")
    with pytest.raises(ServerLacksConnectorError, match=r"pip install 'sskafka\[spark\]'"):
        check_connector(server, pipeline)
    server = Lacking("the server is tired")
    with pytest.raises(RuntimeError, match="tired"):
        check_connector(server, pipeline)
