"""The sink on brokers that allow two-phase commits: its transactions do not time out."""

from collections.abc import Callable, Iterator

import pytest
from cluster_processes import ClusterProcesses
from spark_fixtures import SETTINGS, make_topic
from test_commit_on_brokers import FIRST, SECOND, Query, wait_for_state

from sskafka.client.config import ConnectionConfig
from sskafka.client.transactions import NO_TIMEOUT_MS, add_partitions, describe
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import begin

TIMEOUT_MS = 1_000


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    allowed = {**SETTINGS, "transaction.two.phase.commit.enable": "true"}
    cluster = ClusterProcesses(tmp_path_factory.mktemp("two-phase"), 1, allowed)
    try:
        yield cluster.start().bootstrap
    finally:
        cluster.close()


@pytest.fixture
def session(bootstrap: str) -> Iterator[ClusterSession]:
    with ClusterSession(bootstrap, ConnectionConfig()) as connected:
        yield connected


@pytest.fixture
def query(session: ClusterSession, bootstrap: str) -> Query:
    return Query(session, bootstrap, make_topic(session, 1), transactionTimeoutMs=str(TIMEOUT_MS))


@pytest.fixture
def outlast(session: ClusterSession) -> Callable[[Query], None]:
    """Waits until brokers have aborted an ordinary transaction that began now with the same timeout."""

    def wait(query: Query) -> None:
        witness = session.run(begin(session.cluster, f"{query.name}-witness", TIMEOUT_MS))
        session.run(add_partitions(session.cluster, witness, [TopicPartition(query.topic, 0)]))
        wait_for_state(session, witness.transactional_id, "CompleteAbort")

    return wait


def test_a_batch_may_take_longer_than_any_timeout(
    query: Query, session: ClusterSession, outlast: Callable[[Query], None]
) -> None:
    first = query.write(FIRST, 0, 1)
    described = session.run(describe(session.cluster, first.transaction.transactional_id))
    assert described.transaction_timeout_ms == NO_TIMEOUT_MS
    outlast(query)
    query.commit(FIRST, 0, first, query.write(FIRST, 1, 2))
    assert query.seen(2) == [1, 2]


def test_a_decided_batch_waits_for_its_driver_for_any_time(query: Query, outlast: Callable[[Query], None]) -> None:
    query.decide(FIRST, 0, query.write(FIRST, 0, 1), query.write(FIRST, 1, 2))
    outlast(query)
    query.commit(SECOND, 0, query.write(SECOND, 0, 1), query.write(SECOND, 1, 2))
    assert query.seen(2) == [1, 2]


def test_what_nobody_decided_is_aborted_by_the_next_run(query: Query, session: ClusterSession) -> None:
    left = query.write(FIRST, 0, 1)
    query.commit(SECOND, 0, query.write(SECOND, 0, 1))
    wait_for_state(session, left.transaction.transactional_id, "Empty")  # it was initialized again
    assert query.seen(1) == [1]
