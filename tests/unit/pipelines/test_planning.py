"""The ends of a subscription's partitions, whatever the reader expects them to be."""

from collections.abc import Iterator

import pytest

import sskafka
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.options import source_options
from sskafka.pipelines.connector.planning import ClusterSession, LogEnds, Planner

FIRST, SECOND = TopicPartition("numbers", 0), TopicPartition("numbers", 1)


@pytest.fixture
def session() -> Iterator[ClusterSession]:
    with (
        sskafka.Broker({"num.partitions": 1}) as broker,
        ClusterSession(broker.bootstrap_servers, ConnectionConfig()) as session,
    ):
        append(broker.bootstrap_servers, 3)
        yield session


def append(bootstrap: str, count: int) -> None:
    with sskafka.Producer(bootstrap) as producer:
        producer.send_batch("numbers", None, [b"x"] * count, partition=0)


def bootstrap_of(session: ClusterSession) -> str:
    (broker,) = session.cluster.view.brokers.values()
    return str(broker.address)


def planner_of(session: ClusterSession) -> Planner:
    options = {"kafka.bootstrap.servers": bootstrap_of(session), "subscribe": "numbers"}
    return Planner(source_options(options, streaming=True), session)


def test_the_first_call_expects_nothing(session: ClusterSession) -> None:
    assert planner_of(session).ends((), with_earliest=False) == LogEnds({FIRST: 3})
    assert planner_of(session).ends((), with_earliest=True) == LogEnds({FIRST: 3}, {FIRST: 0})


def test_expected_partitions(session: ClusterSession) -> None:
    planner = planner_of(session)
    known = planner.ends((), with_earliest=False).latest
    append(bootstrap_of(session), 2)
    assert planner.ends(known, with_earliest=True) == LogEnds({FIRST: 5}, {FIRST: 0})


def test_a_partition_that_was_added(session: ClusterSession) -> None:
    planner = planner_of(session)
    known = planner.ends((), with_earliest=False).latest
    session.run(Admin(session.cluster).create_partitions({"numbers": 2}))
    assert planner.ends(known, with_earliest=False) == LogEnds({FIRST: 3, SECOND: 0})


def test_a_topic_that_was_created_again(session: ClusterSession) -> None:
    planner = planner_of(session)
    known = planner.ends((), with_earliest=False).latest
    admin = Admin(session.cluster)
    session.run(admin.delete_topics(["numbers"]))
    session.run(admin.create_topics([NewTopic("numbers", 2, 1)]))
    assert planner.ends(known, with_earliest=True) == LogEnds({FIRST: 0, SECOND: 0}, {FIRST: 0, SECOND: 0})
