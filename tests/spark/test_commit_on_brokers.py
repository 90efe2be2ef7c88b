"""The sink's transactions on real brokers, without Spark: tasks and drivers are calls that may not come to an end."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sskafka.client.config import ConnectionConfig
from sskafka.client.transactions import Transaction, add_partitions, end
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.commit_log import CommitLog, Decision
from sskafka.pipelines.connector.committing import Batch, Committer, cluster_committer, transactional_id
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.errors import CommitFailedError, FencedError, OptionError
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, sink_options, source_options
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.connector.producing import TaskProducer
from sskafka.pipelines.connector.transactions import begin
from sskafka.pipelines.files.parse import load_pipeline
from sskafka.pipelines.runner.recovery import recover_topics

QUERY = "query-id"
VISIBLE_WITHIN_S = 30
RECOVERED_WITHIN_S = 20
"""Far less than the timeout of the transactions that a dead driver leaves."""


class Query:
    """One query's tasks, commits and readers."""

    def __init__(self, session: ClusterSession, bootstrap: str, prefix: str, topic: str = "") -> None:
        self._session = session
        self._bootstrap = bootstrap
        self.prefix = prefix
        self.topic = topic or prefix
        self.options: SinkOptions = sink_options({BOOTSTRAP: bootstrap, "topic": self.topic})

    def write(self, run: str, slot: int, *values: int) -> Transaction:
        async def work() -> Transaction | None:
            name = transactional_id(self.prefix, run, slot)
            producer = TaskProducer(self._session.cluster, self.options, name, slot)
            await producer.write(pa.RecordBatch.from_pydict({"value": [b"%d" % value for value in values]}))
            await producer.flush()
            return producer.transaction

        transaction = self._session.run(work())
        assert transaction is not None
        return transaction

    def committer(self) -> Committer:
        return cluster_committer(self._session, self.options, self.prefix)

    def commit(self, run: str, batch: int, *transactions: Transaction) -> None:
        self.committer().commit(Batch(QUERY, run, batch), transactions)

    def decide(self, run: str, batch: int, *transactions: Transaction) -> None:
        """A driver that dies right behind its intent."""
        CommitLog(self._session, self.options, self.prefix).write(self._intent(run, batch, transactions))

    def begin_to_decide(self, run: str, batch: int, *transactions: Transaction) -> Transaction:
        """A driver that dies between the two: its intent is in the log, in a transaction that is open."""
        intent = self._intent(run, batch, transactions)
        log = CommitLog(self._session, self.options, self.prefix)
        partition = TopicPartition(self.options.control_topic, 0)
        self._session.run(add_partitions(self._session.cluster, intent.driver, [partition]))
        record = log._record(intent)
        self._session.run(deliver(self._session.cluster, {partition: record}, intent.driver.transactional_id))
        return intent.driver

    def _intent(self, run: str, batch: int, transactions: tuple[Transaction, ...]) -> Decision:
        driver = self._session.run(begin(self._session.cluster, f"{self.prefix}-driver", 60_000))
        return Decision(QUERY, run, batch, False, driver, transactions)

    def read(self) -> list[int]:
        """All that readers of committed records can see now."""
        given = {BOOTSTRAP: self._bootstrap, "subscribe": self.topic, "kafka.isolation.level": "read_committed"}
        options = source_options(given, streaming=False)
        planner = Planner(options, self._session)
        ranges = [part for task in planner.tasks(planner.starting(), planner.ending()) for part in task]
        batches = read_ranges(options, ranges) if ranges else ()
        return sorted(int(value) for batch in batches for value in batch.column("value").to_pylist())

    def seen(self, count: int) -> list[int]:
        deadline = time.monotonic() + VISIBLE_WITHIN_S
        while len(found := self.read()) < count and time.monotonic() < deadline:
            time.sleep(0.1)
        return found


@pytest.fixture
def new_query(session: ClusterSession, bootstrap: str, new_topic: Callable[..., str]) -> Callable[[], Query]:
    def make() -> Query:
        query = Query(session, bootstrap, new_topic(2))
        CommitLog(session, query.options, query.prefix).read()  # so that the control topic is there
        return query

    return make


@pytest.fixture
def query(new_query: Callable[[], Query]) -> Query:
    return new_query()


FIRST, SECOND = "aaaaaaaa-run", "bbbbbbbb-run"


def test_nothing_is_seen_before_the_driver_commits(query: Query) -> None:
    written = [query.write(FIRST, 0, 1, 2), query.write(FIRST, 1, 3)]
    assert query.read() == []
    query.commit(FIRST, 0, *written)
    assert query.seen(3) == [1, 2, 3]
    query.commit(FIRST, 1, query.write(FIRST, 0, 4))
    assert query.seen(4) == [1, 2, 3, 4]


def test_an_undecided_batch_is_aborted_by_the_next_run(query: Query) -> None:
    query.commit(FIRST, 0, query.write(FIRST, 0, 1))
    query.write(FIRST, 0, 2)
    query.write(FIRST, 1, 3)
    query.commit(SECOND, 1, query.write(SECOND, 0, 2), query.write(SECOND, 1, 3))
    assert query.seen(3) == [1, 2, 3]


def test_a_decided_batch_is_completed_and_its_repetition_dropped(query: Query) -> None:
    query.decide(FIRST, 0, query.write(FIRST, 0, 1), query.write(FIRST, 1, 2))
    query.commit(SECOND, 0, query.write(SECOND, 0, 1), query.write(SECOND, 1, 2))
    query.commit(SECOND, 1, query.write(SECOND, 0, 3))
    assert query.seen(3) == [1, 2, 3]


def test_recovery_needs_no_new_batch(query: Query) -> None:
    query.decide(FIRST, 0, query.write(FIRST, 0, 1))
    query.write(FIRST, 1, 99)
    assert query.committer().recover(SECOND) is not None
    assert query.seen(1) == [1]


def test_a_superseded_driver_is_fenced(query: Query) -> None:
    query.commit(FIRST, 0, query.write(FIRST, 0, 1))
    query.commit(SECOND, 1, query.write(SECOND, 0, 2))
    with pytest.raises(FencedError, match="newer run"):
        query.commit(FIRST, 1, query.write(FIRST, 0, 2))
    assert query.seen(2) == [1, 2]


def test_a_second_attempt_of_a_task_replaces_the_first(query: Query) -> None:
    first = query.write(FIRST, 0, 1)
    query.commit(FIRST, 0, query.write(FIRST, 0, 1))
    assert query.seen(1) == [1]
    with pytest.raises(CommitFailedError, match="could not be committed"):
        query.committer().commit_job([first])


def test_a_decision_behind_an_open_transaction_of_another_query_counts(
    query: Query, new_query: Callable[[], Query], session: ClusterSession, bootstrap: str
) -> None:
    """All queries decide in one partition; whoever reads there must not stop at what another one has under way."""
    query.commit(FIRST, 0, query.write(FIRST, 0, 1))
    other = new_query().begin_to_decide(FIRST, 0)
    written = query.write(FIRST, 0, 2)
    query.decide(FIRST, 1, written)
    session.run(end(session.cluster, written, commit=True))
    with OpenFor(1, bootstrap, other):
        query.commit(SECOND, 1, query.write(SECOND, 0, 2))
    query.commit(SECOND, 2, query.write(SECOND, 0, 3))
    assert query.seen(3) == [1, 2, 3]


class OpenFor:
    """Ends a transaction, as its own driver would, some seconds from now."""

    def __init__(self, seconds: float, bootstrap: str, transaction: Transaction) -> None:
        self._thread = threading.Timer(seconds, self._end, (bootstrap, transaction))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _end(self, bootstrap: str, transaction: Transaction) -> None:
        with ClusterSession(bootstrap, ConnectionConfig()) as session:
            session.run(end(session.cluster, transaction, commit=True))


PIPELINE = """\
name: {name}
sources:
  orders: {{topic: orders, schema: id long}}
sinks:
  - topic: {{topic: out}}
"""


def test_a_pipeline_that_died_while_all_its_sinks_decided_is_recovered_at_once(
    session: ClusterSession, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic(2)
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.format(name=topic))
    sink, letters = (Query(session, bootstrap, f"{topic}-{name}", topic) for name in ("topic", "dead-letters"))
    sink.commit(FIRST, 0, sink.write(FIRST, 0, 1))
    letters.begin_to_decide(FIRST, 1)
    sink.decide(FIRST, 1, sink.write(FIRST, 0, 2))
    began = time.monotonic()
    recover_topics(session, load_pipeline(file), bootstrap, SECOND)
    assert sink.seen(2) == [1, 2]
    assert time.monotonic() - began < RECOVERED_WITHIN_S


def test_a_timeout_that_brokers_do_not_allow_is_named(query: Query, session: ClusterSession) -> None:
    with pytest.raises(OptionError, match=r"transaction\.max\.timeout\.ms"):
        session.run(begin(session.cluster, "too-long", 2_000_000_000))
