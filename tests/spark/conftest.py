"""Real Spark and real brokers. One session and one cluster serve all tests, because each takes long to start."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from derby import QUIET_DERBY
from spark_fixtures import PY4J_LEAVES, Produce, bootstrap, brokers, new_topic, produce, session

from sskafka.pipelines.session import JAVA_OPTIONS, SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Produce", "bootstrap", "brokers", "new_topic", "produce", "session"]

TEST_SECONDS_MAX = 600
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Tests are over before code that was optimized has made up for it. A test's Java has few objects and few cores."""


def pytest_configure() -> None:
    """Give the options to every Java that a test starts, at whatever remove."""
    options = os.environ.get(JAVA_OPTIONS, "")
    if QUICK_JAVA not in options:
        os.environ[JAVA_OPTIONS] = f"{options} {QUICK_JAVA}".strip()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
        item.add_marker(pytest.mark.filterwarnings(*PY4J_LEAVES))


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    session = start_session(SessionSettings("tests", "local[2]", {"spark.driver.extraJavaOptions": QUIET_DERBY}))
    yield session
    session.stop()
