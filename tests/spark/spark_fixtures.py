"""Brokers and topics for tests with Spark: what `conftest` files of several folders share.

SSKAFKA_TEST_BOOTSTRAP runs the tests against another cluster, such as Apache Kafka.
"""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from cluster_processes import ClusterProcesses
from waiting import wait_until

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.planning import ClusterSession

Produce: TypeAlias = Callable[..., None]

SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
PY4J_LEAVES = ("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
"""Warnings of pyspark, and sockets that py4j leaves open."""


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


@pytest.fixture
def session(bootstrap: str) -> Iterator[ClusterSession]:
    with ClusterSession(bootstrap, ConnectionConfig()) as connected:
        yield connected


def make_topic(session: ClusterSession, partitions: int = 3, name: str = "t", **configs: str) -> str:
    """A topic of a name that nobody else has."""
    topic = f"{name}-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    kept = NewTopic(topic, partitions, configs={"retention.ms": "-1", **settings})  # records here are of 1970 and 2023
    outcome = session.run(Admin(session.cluster).create_topics([kept]))[topic]
    assert not isinstance(outcome, KafkaError), outcome
    wait_until(lambda: is_known(session, topic), f"the broker that is asked knows {topic}")
    return topic


def is_known(session: ClusterSession, topic: str) -> bool:
    """A broker that has just come back may not have heard of a new topic."""
    try:
        return bool(session.run(session.cluster.topic(topic)).partitions)
    except KafkaError:
        return False


def append(
    session: ClusterSession,
    topic: str,
    values: Sequence[bytes | Row | None],
    partition: int = 0,
    timestamp: int = 1_700_000_000_000,
) -> None:
    """Appends values, without keys, or whole rows to one partition."""
    rows = [value if isinstance(value, Row) else Row(None, value) for value in values]
    for payload in payloads(rows):
        batch = framed(payload, timestamp=timestamp)
        session.run(deliver(session.cluster, {TopicPartition(topic, partition): batch}, None))


@pytest.fixture
def new_topic(session: ClusterSession) -> Callable[..., str]:
    return partial(make_topic, session)


@pytest.fixture
def produce(session: ClusterSession) -> Produce:
    return partial(append, session)
