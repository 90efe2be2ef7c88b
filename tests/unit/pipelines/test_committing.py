"""Exactly once, whatever dies when: every crash point of a driver and its tasks, against a model of the coordinator."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sskafka.client.transactions import Transaction
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.commit_log import Decision
from sskafka.pipelines.connector.committing import Batch, Committer, transactional_id
from sskafka.pipelines.connector.errors import CommitFailedError, ConnectorError, FencedError

PREFIX, QUERY = "q", "query-1"
BATCHES = 3
SLOTS = 2


class DriverCrashError(Exception):
    """The driver is gone."""


@dataclass
class Cluster:
    """What a coordinator promises: epochs fence, an id has one open transaction, ends of the same kind may repeat."""

    epochs: dict[str, int] = field(default_factory=dict)
    open: dict[str, list[str]] = field(default_factory=dict)
    ended: dict[str, tuple[int, bool]] = field(default_factory=dict)
    topic: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    steps: int = 0
    crash_at: int = -1
    crash_after: bool = False

    def step(self, action: Callable[[], None]) -> None:
        """Every change is a step; a crash comes before or after one."""
        self.steps += 1
        if self.steps == self.crash_at and not self.crash_after:
            raise DriverCrashError
        action()
        if self.steps == self.crash_at:
            raise DriverCrashError

    def begin(self, transactional_id: str, last: Transaction | None = None) -> Transaction:
        if last is not None and last.producer_epoch != self.epochs.get(transactional_id):
            raise KafkaError(ErrorCode.PRODUCER_FENCED, "fenced")
        self.step(lambda: self._take_over(transactional_id))
        return Transaction(transactional_id, 1, self.epochs[transactional_id])

    def _take_over(self, transactional_id: str) -> None:
        self.open.pop(transactional_id, None)
        self.ended.pop(transactional_id, None)
        self.epochs[transactional_id] = self.epochs.get(transactional_id, -1) + 1

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        name = transaction.transactional_id
        if transaction.producer_epoch != self.epochs.get(name):
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, "fenced")
        if name not in self.open and self.ended.get(name) != (transaction.producer_epoch, commit):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "no open transaction")
        self.step(lambda: self._end(name, transaction.producer_epoch, commit))

    def _end(self, name: str, epoch: int, commit: bool) -> None:
        rows = self.open.pop(name, [])
        self.ended[name] = (epoch, commit)
        if commit:
            self.topic += rows

    def state_of(self, transactional_id: str) -> str:
        return "Ongoing" if transactional_id in self.open else "CompleteAbort"

    def open_transactions(self, prefix: str) -> list[str]:
        return [name for name in self.open if name.startswith(prefix)]

    def read(self) -> Decision | None:
        return self.decisions[-1] if self.decisions else None

    def write(self, decision: Decision) -> None:
        if decision.driver.producer_epoch != self.epochs[f"{PREFIX}-driver"]:
            raise KafkaError(ErrorCode.PRODUCER_FENCED, "fenced")
        self.step(lambda: self.decisions.append(decision))

    def time_out(self) -> None:
        """Every open transaction was open for too long."""
        for name in list(self.open):
            self._take_over(name)


class Query:
    """Spark: runs batches in order, remembers which it has committed, and repeats the last one after a crash."""

    def __init__(self, cluster: Cluster, query_id: str = QUERY) -> None:
        self.cluster = cluster
        self.query_id = query_id
        self.next_batch = 0
        self.runs = 0

    def committer(self) -> Committer:
        return Committer(self.cluster, self.cluster, PREFIX)

    def run(self, batches: int = BATCHES) -> None:
        self.runs += 1
        run = f"{self.runs:08x}-uuid"
        while self.next_batch < batches:
            written = [self.write(run, self.next_batch, slot) for slot in range(SLOTS)]
            self.committer().commit(Batch(self.query_id, run, self.next_batch), written)
            self.next_batch += 1

    def write(self, run: str, batch: int, slot: int) -> Transaction:
        transaction = self.cluster.begin(transactional_id(PREFIX, run, slot))
        self.cluster.open[transaction.transactional_id] = [f"{batch}/{slot}"]
        return transaction


def expected(batches: int = BATCHES) -> list[str]:
    return sorted(f"{batch}/{slot}" for batch in range(batches) for slot in range(SLOTS))


def test_without_crashes_every_row_is_there_once() -> None:
    query = Query(Cluster())
    query.run()
    assert sorted(query.cluster.topic) == expected()
    assert not query.cluster.open


STEPS = 60
"""More than the steps of a run, so that the last runs crash nowhere."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("second", [0, 1, 2, 4, 7])
def test_two_crashes_at_every_pair_of_steps(after: bool, second: int) -> None:
    crashes = 0
    for first in range(1, STEPS):
        cluster = Cluster(crash_at=first, crash_after=after)
        query = Query(cluster)
        try:
            query.run()
        except DriverCrashError:
            crashes += 1
        cluster.crash_at = cluster.steps + second
        try:
            query.run()
        except DriverCrashError:
            cluster.crash_at = -1
            query.run()
        assert sorted(cluster.topic) == expected(), f"crashes at steps {first} and {second} later"
    assert crashes > 10


def test_a_repeated_attempt_of_a_task_replaces_the_one_before() -> None:
    cluster = Cluster()
    query = Query(cluster)
    first = query.write("00000001-uuid", 0, 0)
    second = query.write("00000001-uuid", 0, 0)
    query.committer().commit(Batch(QUERY, "00000001-uuid", 0), [second])
    assert cluster.topic == ["0/0"]
    with pytest.raises(KafkaError):
        cluster.end(first, commit=True)


def test_a_zombie_driver_decides_nothing_any_more() -> None:
    cluster = Cluster()
    old, new = Query(cluster), Query(cluster)
    old.run(1)
    zombie_rows = [old.write("00000001-uuid", 1, 0)]
    new.runs, new.next_batch = 1, 1
    new.run(2)
    with pytest.raises(FencedError, match="newer run"):
        old.committer().commit(Batch(QUERY, "00000001-uuid", 1), zombie_rows)
    with pytest.raises(FencedError, match="newer run"):
        old.committer().commit(Batch(QUERY, "00000001-uuid", 2), zombie_rows)
    new.run(3)
    assert sorted(cluster.topic) == expected()


def test_a_driver_that_loses_its_id_between_reading_and_taking_it_is_fenced() -> None:
    cluster = Cluster()
    query = Query(cluster)
    query.run(1)
    cluster.begin(f"{PREFIX}-driver")  # a newer run that has not decided anything yet
    with pytest.raises(FencedError, match="newer run"):
        query.committer().commit(Batch(QUERY, "00000001-uuid", 1), [query.write("00000001-uuid", 1, 0)])


def test_a_transaction_that_timed_out_after_the_decision_is_loud() -> None:
    cluster = Cluster(crash_after=True)
    query = Query(cluster)
    cluster.crash_at = SLOTS + 2  # behind the tasks and the driver's id: the intent was just written
    with pytest.raises(DriverCrashError):
        query.run()
    assert cluster.decisions
    assert not cluster.decisions[-1].is_committed
    cluster.crash_at = -1
    cluster.time_out()
    with pytest.raises(CommitFailedError, match="transactionTimeoutMs"):
        query.run()


def test_a_query_with_a_new_checkpoint_begins_anew_under_its_old_name() -> None:
    cluster = Cluster()
    Query(cluster).run(1)
    again = Query(cluster, "query-2")
    again.runs = 7
    again.run(1)
    assert sorted(cluster.topic) == ["0/0", "0/0", "0/1", "0/1"]


def test_a_checkpoint_that_is_older_than_the_output_is_refused() -> None:
    cluster = Cluster()
    query = Query(cluster)
    query.run(3)
    query.next_batch = 1
    with pytest.raises(ConnectorError, match="older than the output"):
        query.run(3)
    assert sorted(cluster.topic) == expected()


def test_recovery_completes_what_was_decided_and_aborts_the_rest() -> None:
    cluster = Cluster(crash_after=True, crash_at=SLOTS + 2)
    query = Query(cluster)
    with pytest.raises(DriverCrashError):
        query.run()
    cluster.crash_at = -1
    undecided = query.write("00000009-uuid", 5, 0)
    last = query.committer().recover("0000000a-uuid")
    assert last is not None
    assert last.batch == 0
    assert sorted(cluster.topic) == expected(1)
    assert undecided.transactional_id not in cluster.open
    query.run()
    assert sorted(cluster.topic) == expected()


def test_a_batch_without_rows_decides_nothing_but_the_first_of_a_run_settles_the_last_one() -> None:
    cluster = Cluster(crash_after=True, crash_at=SLOTS + 2)
    query = Query(cluster)
    with pytest.raises(DriverCrashError):
        query.run()
    cluster.crash_at = -1
    query.committer().commit(Batch(QUERY, "0000000a-uuid", 0), [])
    assert sorted(cluster.topic) == expected(1)
    decided = len(cluster.decisions)
    query.committer().commit(Batch(QUERY, "0000000a-uuid", 1), [])
    assert len(cluster.decisions) == decided
