"""Brokers and programs for interoperability tests.

Every test of a client runs against both kinds of broker: Apache Kafka proves the test, SSKafka is what it is for. A
program that cannot be had here skips the tests that need it, with the reason.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# The harness that starts brokers is shared with the benchmarks, beside the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "pages"))

from benchmarks.apache_kafka import KafkaLibs, resolve_kafka_libs
from benchmarks.brokers import Broker, BrokerKind, apache_kafka_kind, sskafka_kind
from benchmarks.maven import UnavailableError
from benchmarks.spark_kafka import resolve_spark_kafka_jars, spark_jars
from one_worker import one_worker_at_a_time
from programs import APACHE_KAFKA, SSKAFKA, JavaTools, Kcat
from spark_fixtures import PY4J_LEAVES, bootstrap, brokers, new_topic, produce, session

from sskafka.pipelines.session import SessionSettings, start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["bootstrap", "brokers", "new_topic", "produce", "session"]

TEST_SECONDS_MAX = 300
INSTALL_SECONDS_MAX = 120

_numbers = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.interop)
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
            if item.path.name.startswith("test_spark_"):
                item.add_marker(pytest.mark.filterwarnings(*PY4J_LEAVES))


@pytest.fixture(scope="session")
def kafka_libs() -> KafkaLibs:
    try:
        with one_worker_at_a_time():
            return resolve_kafka_libs()
    except UnavailableError as reason:
        pytest.skip(f"Apache Kafka is not available: {reason}")


@pytest.fixture(scope="session")
def java(kafka_libs: KafkaLibs) -> JavaTools:
    return JavaTools(kafka_libs)


@pytest.fixture(scope="session")
def kcat_program() -> str:
    with one_worker_at_a_time():
        if shutil.which("kcat") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
            install_kcat()
    if (program := shutil.which("kcat")) is None:
        pytest.skip("kcat is not installed and could not be: apt-get install kcat")
    return program


def install_kcat() -> None:
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "kcat"]):
        subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS_MAX, check=False)


@pytest.fixture(scope="session")
def broker_kind(request: pytest.FixtureRequest) -> Callable[[str], BrokerKind]:
    """A kind of broker by its name; Apache Kafka only where it can be had."""

    def by_name(name: str) -> BrokerKind:
        if name == SSKAFKA:
            return sskafka_kind()
        libs: KafkaLibs = request.getfixturevalue("kafka_libs")
        return apache_kafka_kind(libs)

    return by_name


@pytest.fixture(scope="session", params=[APACHE_KAFKA, SSKAFKA])
def broker(
    request: pytest.FixtureRequest,
    broker_kind: Callable[[str], BrokerKind],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Broker]:
    """A running broker of each kind, shared by the tests: they use topics of their own."""
    with broker_kind(request.param).running(tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture
def kcat(kcat_program: str, broker: Broker) -> Kcat:
    return Kcat(kcat_program, broker.bootstrap)


@pytest.fixture
def topic() -> str:
    return f"interop-{next(_numbers)}"


@pytest.fixture(scope="session")
def official_jars() -> str:
    """The value of `spark.jars` that brings Spark's own Kafka connector."""
    try:
        with one_worker_at_a_time():
            return spark_jars(resolve_spark_kafka_jars())
    except UnavailableError as reason:
        pytest.skip(f"Spark's own Kafka connector is not available: {reason}")


@pytest.fixture(scope="session")
def spark(official_jars: str) -> Iterator["SparkSession"]:
    """A session with both connectors; one serves all tests, because it takes long to start."""
    yield start_session(SessionSettings("interop", "local[2]", {"spark.jars": official_jars}))
    stop_session()
