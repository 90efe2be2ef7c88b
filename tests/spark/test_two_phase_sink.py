"""The sink on brokers that allow two-phase commits: its transactions do not time out."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_processes import ClusterProcesses
from spark_fixtures import SETTINGS, make_topic
from test_commit_on_brokers import FIRST, QUERY, SECOND, Query, wait_for_state

from sskafka.client.config import ConnectionConfig
from sskafka.client.transactions import NO_TIMEOUT_MS, add_partitions, describe
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import begin
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.runner.backfill import _Backfill, backfilled, run_backfill
from sskafka.pipelines.runner.backfill_range import parse_range
from sskafka.pipelines.runner.recovery import checkpoint_of, transactional_prefix
from sskafka.pipelines.runner.resetting import steps_to_reset
from sskafka.pipelines.runner.run import RunSettings

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


PIPELINE = """\
name: {topic}
sources:
  numbers: {{topic: numbers, format: text}}
sinks:
  - topic: {{topic: {topic}}}
"""


@pytest.fixture
def pipeline(session: ClusterSession, tmp_path: Path) -> Pipeline:
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.format(topic=make_topic(session, 1)))
    return load_pipeline(file)


def killed_query(session: ClusterSession, bootstrap: str, pipeline: Pipeline) -> tuple[Query, str]:
    """Return the query of the pipeline's sink, which was killed within a batch, and the id of its open transaction."""
    checkpoint = Path(checkpoint_of(pipeline, "topic"))
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": QUERY}))
    query = Query(session, bootstrap, transactional_prefix(pipeline, "topic"), pipeline.written_topics[0])
    return query, query.write(FIRST, 0, 1).transaction.transactional_id


def test_a_reset_aborts_what_a_killed_run_has_left(session: ClusterSession, bootstrap: str, pipeline: Pipeline) -> None:
    """Nobody knew these transactions after the checkpoint was deleted: readers waited for ever."""
    _, left = killed_query(session, bootstrap, pipeline)
    steps = list(steps_to_reset(session, pipeline, bootstrap, "now"))
    assert [step.text for step in steps] == [
        "settle the transactions of topic: abort 1 open transactions of topic",
        f"delete the checkpoint {checkpoint_of(pipeline, 'topic')}",
    ]
    assert session.run(describe(session.cluster, left)).transaction_state == "Ongoing"
    for step in steps:
        step.work()
    wait_for_state(session, left, "Empty")
    assert not Path(pipeline.checkpoint_root).exists()


def test_a_reset_completes_what_a_killed_run_has_decided(
    session: ClusterSession, bootstrap: str, pipeline: Pipeline
) -> None:
    query, _ = killed_query(session, bootstrap, pipeline)
    query.decide(FIRST, 0, query.write(FIRST, 1, 2, 3))
    for step in steps_to_reset(session, pipeline, bootstrap, "now"):
        step.work()
    assert query.seen(2) == [2, 3]


def test_a_backfill_that_runs_again_aborts_what_a_killed_run_has_left(
    session: ClusterSession, bootstrap: str, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = parse_range("earliest", "")
    backfill = backfilled(pipeline, chosen)
    _, left = killed_query(session, bootstrap, backfill)
    monkeypatch.setattr(_Backfill, "run", lambda *_: None)
    run_backfill(pipeline, chosen, RunSettings(bootstrap), again=True)
    wait_for_state(session, left, "Empty")
    assert not Path(backfill.checkpoint_root).exists()
