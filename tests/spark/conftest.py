"""Real Spark and real brokers. One session and one cluster serve all tests, because each takes long to start.

SSKAFKA_TEST_BOOTSTRAP runs the tests against another cluster, such as Apache Kafka.
"""

import asyncio
import os
import sys
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from cluster_processes import ClusterProcesses

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.session import SessionSettings, start_session
from sskafka.records.compression import Compression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
Produce: TypeAlias = Callable[..., None]

TEST_SECONDS_MAX = 600
SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
        item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"))
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))  # sockets of py4j


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses | None]:
    """Three brokers; None where the tests run against a cluster of somebody else's."""
    if "SSKAFKA_TEST_BOOTSTRAP" in os.environ:
        yield None
        return
    cluster = ClusterProcesses(tmp_path_factory.mktemp("cluster"), 3, SETTINGS)
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def bootstrap(brokers: ClusterProcesses | None) -> str:
    return os.environ["SSKAFKA_TEST_BOOTSTRAP"] if brokers is None else brokers.bootstrap


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    session = start_session(SessionSettings("tests", "local[2]"))
    yield session
    session.stop()


@pytest.fixture
def session(bootstrap: str) -> Iterator[ClusterSession]:
    with ClusterSession(bootstrap, ConnectionConfig()) as connected:
        yield connected


@pytest.fixture
def new_topic(session: ClusterSession) -> Callable[..., str]:
    """Makes a topic of a name that nobody else has."""

    def create(partitions: int = 3, name: str = "t") -> str:
        topic = f"{name}-{uuid.uuid4().hex[:8]}"
        kept = NewTopic(topic, partitions, configs={"retention.ms": "-1"})  # records here are of 1970 and 2023
        outcome = session.run(Admin(session.cluster).create_topics([kept]))[topic]
        assert not isinstance(outcome, KafkaError), outcome
        return topic

    return create


@pytest.fixture
def produce(session: ClusterSession) -> Produce:
    """Appends values, without keys, to one partition."""

    def send(
        topic: str, values: Sequence[bytes | None], partition: int = 0, timestamp: int = 1_700_000_000_000
    ) -> None:
        for payload in payloads([Row(None, value) for value in values]):
            batch = framed(
                payload,
                timestamp=timestamp,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                codec=Compression.NONE,
                transactional=False,
            )
            session.run(deliver(session.cluster, {TopicPartition(topic, partition): batch}, None))

    return send


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@pytest.fixture
def cluster_of(bootstrap: str) -> Callable[[], Cluster]:
    return lambda: Cluster(bootstrap)
