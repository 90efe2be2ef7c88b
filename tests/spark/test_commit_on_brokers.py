"""The sink's transactions on real brokers, without Spark: tasks and drivers are calls that may not come to an end."""

import time
from collections.abc import Callable

import pyarrow as pa
import pytest

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.commit_log import CommitLog, Decision
from sskafka.pipelines.connector.committing import Batch, Committer, cluster_committer, transactional_id
from sskafka.pipelines.connector.errors import CommitFailedError, FencedError, OptionError
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, sink_options, source_options
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.connector.producing import TaskProducer
from sskafka.pipelines.connector.transactions import begin

QUERY = "query-id"
VISIBLE_WITHIN_S = 30


class Query:
    """One query's tasks, commits and readers."""

    def __init__(self, session: ClusterSession, bootstrap: str, topic: str) -> None:
        self._session = session
        self._bootstrap = bootstrap
        self.topic = topic
        self.options: SinkOptions = sink_options({BOOTSTRAP: bootstrap, "topic": topic})

    def write(self, run: str, slot: int, *values: int) -> Transaction:
        async def work() -> Transaction | None:
            name = transactional_id(self.topic, run, slot)
            producer = TaskProducer(self._session.cluster, self.options, name, slot)
            await producer.write(pa.RecordBatch.from_pydict({"value": [b"%d" % value for value in values]}))
            await producer.flush()
            return producer.transaction

        transaction = self._session.run(work())
        assert transaction is not None
        return transaction

    def committer(self) -> Committer:
        return cluster_committer(self._session, self.options, self.topic)

    def commit(self, run: str, batch: int, *transactions: Transaction) -> None:
        self.committer().commit(Batch(QUERY, run, batch), transactions)

    def decide(self, run: str, batch: int, *transactions: Transaction) -> None:
        """A driver that dies right behind its intent."""
        driver = self._session.run(begin(self._session.cluster, f"{self.topic}-driver", 60_000))
        log = CommitLog(self._session, self.options, self.topic)
        log.read()
        log.write(Decision(QUERY, run, batch, False, driver, transactions))

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
def query(session: ClusterSession, bootstrap: str, new_topic: Callable[..., str]) -> Query:
    return Query(session, bootstrap, new_topic(2))


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


def test_a_timeout_that_brokers_do_not_allow_is_named(query: Query, session: ClusterSession) -> None:
    with pytest.raises(OptionError, match=r"transaction\.max\.timeout\.ms"):
        session.run(begin(session.cluster, "too-long", 2_000_000_000))
