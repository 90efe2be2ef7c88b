"""Real Spark and real brokers. One session and one cluster serve all tests, because each takes long to start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from derby import QUIET_DERBY
from spark_fixtures import PY4J_LEAVES, Produce, bootstrap, brokers, new_topic, produce, session

from sskafka.pipelines.session import SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Produce", "bootstrap", "brokers", "new_topic", "produce", "session"]

TEST_SECONDS_MAX = 600
QUICK_JAVA = f"-XX:TieredStopAtLevel=1 {QUIET_DERBY}"
"""Tests are over before code that was optimized has made up for it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
        item.add_marker(pytest.mark.filterwarnings(*PY4J_LEAVES))


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    session = start_session(SessionSettings("tests", "local[2]", {"spark.driver.extraJavaOptions": QUICK_JAVA}))
    yield session
    session.stop()
