"""Exactly once, whatever dies when: every crash point of a driver and its tasks, against a model of the coordinator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from sskafka.client.transactions import Transaction
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector import committing
from sskafka.pipelines.connector.commit_effects import Condition
from sskafka.pipelines.connector.commit_protocol import Attempt, Query
from sskafka.pipelines.connector.committing import ClusterCoordinator, Committer
from sskafka.pipelines.connector.decision import Decision, Fate, Owner, Part, Phase, Place
from sskafka.pipelines.connector.errors import (
    CheckpointError,
    CommitFailedError,
    ConnectorError,
    FencedError,
    NotDecidedError,
    OptionError,
)
from sskafka.pipelines.connector.options import BOOTSTRAP, sink_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import transactional_id
from sskafka.runtime.clock import SystemClock

PREFIX, QUERY_ID = "q", "query-1"
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
    crash_at_intent: bool = False
    time_left_ms: float = 60_000
    earlier_prefix: str = ""
    unanswered: int = 0
    parts_max: int = 1_000
    """Number of parts that a decision has room for."""
    loses_answers: bool = False
    """Every request has to be sent twice."""
    moving: set[str] = field(default_factory=set)
    """Ids whose coordinator changes: nobody lists them."""

    def step(self, action: Callable[[], None]) -> None:
        """Every change is a step; a crash comes before or after one."""
        self.steps += 1
        self.unanswered += self.loses_answers
        if self.steps == self.crash_at and not self.crash_after:
            raise DriverCrashError
        action()
        if self.steps == self.crash_at:
            raise DriverCrashError

    def begin(self, transactional_id: str) -> Transaction:
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

    def fence(self, transaction: Transaction) -> None:
        if transaction.producer_epoch == self.epochs.get(transaction.transactional_id):
            self.begin(transaction.transactional_id)

    def _end(self, name: str, epoch: int, commit: bool) -> None:
        rows = self.open.pop(name, [])
        self.ended[name] = (epoch, commit)
        if commit:
            self.topic += rows

    def end_all(self, transactions: Sequence[Transaction], *, commit: bool) -> list[KafkaError | None]:
        errors: list[KafkaError | None] = []
        for transaction in transactions:
            try:
                self.end(transaction, commit=commit)
            except KafkaError as error:
                errors.append(error)
            else:
                errors.append(None)
        return errors

    def conditions_of(self, transactions: Sequence[Transaction]) -> list[Condition]:
        return [self.condition_of(transaction) for transaction in transactions]

    def condition_of(self, transaction: Transaction) -> Condition:
        name = transaction.transactional_id
        is_open = name in self.open and self.epochs[name] == transaction.producer_epoch
        is_committed = self.ended.get(name) == (transaction.producer_epoch, True)
        ended = "CompleteCommit" if is_committed else "CompleteAbort"
        return Condition(is_open, "Ongoing" if is_open else ended, self.time_left_ms)

    def open_transactions(self, prefix: str) -> list[str]:
        return [name for name in self.open if name.startswith(prefix) and name not in self.moving]

    def open_transaction_of(self, transactional_id: str) -> Transaction | None:
        return Transaction(transactional_id, 1, self.epochs[transactional_id])

    def is_visible(self, place: Place) -> bool | None:
        return place.topic in self.topic

    def read(self) -> Decision | None:
        return self.decisions[-1] if self.decisions else None

    peek = read

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition("control", 0)

    def next_sequence(self, driver: Transaction) -> int:
        return 0

    def write(self, decision: Decision, driver: Transaction, *, decides: bool = False) -> None:
        if decides and len(decision.parts) > self.parts_max:
            raise NotDecidedError("write the query with fewer tasks")
        if driver.producer_epoch != self.epochs[f"{PREFIX}-driver"]:
            raise KafkaError(ErrorCode.PRODUCER_FENCED, "fenced")
        self.step(lambda: self.decisions.append(Decision.from_json(decision.to_json())))
        if self.crash_at_intent and decision.phase is Phase.DECIDED:
            self.crash_at_intent = False
            raise DriverCrashError

    def time_out(self) -> None:
        """Every open transaction was open for too long."""
        for name in list(self.open):
            self._take_over(name)


class SparkQuery:
    """Spark: runs batches in order, remembers which it has committed, and repeats the last one after a crash."""

    def __init__(self, cluster: Cluster, query_id: str = QUERY_ID) -> None:
        self.cluster = cluster
        self.query_id = query_id
        self.next_batch = 0
        self.runs = 0

    def committer(self, run: str, checkpoint: str = "") -> Committer:
        query = Query(self.query_id, self.query_id, Owner(run), checkpoint, reserve_ms=1_000)
        return Committer(self.cluster, self.cluster, PREFIX, query)

    def commit(self, run: str, batch: int, *parts: Part, offsets: str = "") -> Decision:
        return self.committer(run).commit(Attempt(batch, parts, offsets))

    def run(self, batches: int = BATCHES) -> None:
        self.runs += 1
        run = f"{self.runs:08x}-uuid"
        while self.next_batch < batches:
            written = [self.write(run, self.next_batch, slot) for slot in range(SLOTS)]
            self.commit(run, self.next_batch, *written)
            self.next_batch += 1

    def write(self, run: str, batch: int, slot: int, *, counted: bool = False) -> Part:
        epoch = self.committer(run).claim()
        transaction = self.cluster.begin(transactional_id(PREFIX, epoch, "abc", slot))
        row = f"{batch}/{slot}"
        self.cluster.open[transaction.transactional_id] = [row]
        return Part(transaction, slot, 1, batch * 10 + slot, Place(row, 0, 0)) if counted else Part(transaction)


def expected(batches: int = BATCHES) -> list[str]:
    return sorted(f"{batch}/{slot}" for batch in range(batches) for slot in range(SLOTS))


def test_without_crashes_every_row_is_there_once() -> None:
    query = SparkQuery(Cluster())
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
        query = SparkQuery(cluster)
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
    query = SparkQuery(cluster)
    first = query.write("00000001-uuid", 0, 0)
    second = query.write("00000001-uuid", 0, 0)
    query.commit("00000001-uuid", 0, second)
    assert cluster.topic == ["0/0"]
    with pytest.raises(KafkaError):
        cluster.end(first.transaction, commit=True)


def test_a_zombie_driver_decides_nothing_any_more() -> None:
    cluster = Cluster()
    old, new = SparkQuery(cluster), SparkQuery(cluster)
    old.run(1)
    zombie_rows = [old.write("00000001-uuid", 1, 0)]
    new.runs, new.next_batch = 1, 1
    new.run(2)
    with pytest.raises(FencedError, match="newer run"):
        old.commit("00000001-uuid", 1, *zombie_rows)
    with pytest.raises(FencedError, match="newer run"):
        old.commit("00000001-uuid", 2, *zombie_rows)
    new.run(3)
    assert sorted(cluster.topic) == expected()


def test_a_driver_whose_query_was_claimed_meanwhile_is_fenced() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    query.run(1)
    written = query.write("00000001-uuid", 1, 0)
    query.committer("00000002-uuid").claim()  # a newer run that has not decided anything yet
    with pytest.raises(FencedError, match="newer run"):
        query.commit("00000001-uuid", 1, written)


def test_a_transaction_that_timed_out_after_the_decision_is_loud() -> None:
    cluster = Cluster(crash_at_intent=True)
    query = SparkQuery(cluster)
    with pytest.raises(DriverCrashError):
        query.run()
    assert cluster.decisions
    assert not cluster.decisions[-1].is_committed
    cluster.time_out()
    with pytest.raises(CommitFailedError, match="transactionTimeoutMs"):
        query.run()


def test_a_query_with_a_new_checkpoint_begins_anew_under_its_old_name() -> None:
    cluster = Cluster()
    SparkQuery(cluster).run(1)
    again = SparkQuery(cluster, "query-2")
    again.runs = 7
    again.run(1)
    assert sorted(cluster.topic) == ["0/0", "0/0", "0/1", "0/1"]


def test_a_checkpoint_that_is_older_than_the_output_is_refused() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    query.run(3)
    query.next_batch = 1
    with pytest.raises(ConnectorError, match="older than the output"):
        query.run(3)
    assert sorted(cluster.topic) == expected()


def test_recovery_completes_what_was_decided_and_aborts_the_rest() -> None:
    cluster = Cluster(crash_at_intent=True)
    query = SparkQuery(cluster)
    with pytest.raises(DriverCrashError):
        query.run()
    undecided = query.write("00000009-uuid", 5, 0)
    last = query.committer("0000000a-uuid").recover()
    assert last is not None
    assert last.batch == 0
    assert sorted(cluster.topic) == expected(1)
    assert undecided.transaction.transactional_id not in cluster.open
    query.run()
    assert sorted(cluster.topic) == expected()


def test_a_batch_without_rows_decides_nothing_but_the_first_of_a_run_settles_the_last_one() -> None:
    cluster = Cluster(crash_at_intent=True)
    query = SparkQuery(cluster)
    with pytest.raises(DriverCrashError):
        query.run()
    query.commit("0000000a-uuid", 0)
    assert sorted(cluster.topic) == expected(1)
    decided = len(cluster.decisions)
    query.commit("0000000a-uuid", 1)
    assert len(cluster.decisions) == decided


RUN, NEXT_RUN = "0000000a-uuid", "0000000b-uuid"


def test_a_decided_batch_is_not_aborted_when_its_commit_failed() -> None:
    cluster = Cluster(crash_at_intent=True)
    query = SparkQuery(cluster)
    written = (query.write(RUN, 0, 0), query.write(RUN, 0, 1))
    with pytest.raises(DriverCrashError):
        query.commit(RUN, 0, *written)
    query.committer(RUN).abort(Attempt(0, written))
    assert sorted(cluster.topic) == expected(1)
    query.commit(NEXT_RUN, 0, query.write(NEXT_RUN, 0, 0), query.write(NEXT_RUN, 0, 1))
    assert sorted(cluster.topic) == expected(1)


def test_an_undecided_batch_is_aborted_and_its_run_can_decide_nothing_any_more() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    written = query.write(RUN, 0, 0)
    query.committer(RUN).abort(Attempt(0, (written,)))
    assert not cluster.open
    with pytest.raises(FencedError, match="newer run"):
        query.commit(RUN, 0, written)


def test_a_batch_with_a_transaction_that_timed_out_is_not_decided() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    first = query.write(RUN, 0, 0)
    cluster.time_out()
    second = query.write(RUN, 0, 1)
    with pytest.raises(NotDecidedError, match=r"no longer open.*transaction\.max\.timeout\.ms"):
        query.commit(RUN, 0, first, second)
    assert cluster.decisions[-1].batch == -1


def test_a_batch_is_not_decided_when_too_little_time_is_left_to_commit_it() -> None:
    cluster = Cluster(time_left_ms=900)
    query = SparkQuery(cluster)
    with pytest.raises(NotDecidedError, match=r"times out in 900 ms.*1000 ms are needed"):
        query.commit(RUN, 0, query.write(RUN, 0, 0))
    assert cluster.decisions[-1].batch == -1


def lost_one_part(cluster: Cluster, query: SparkQuery) -> None:
    """Batch 0 is decided, slot 1 is committed, slot 0 timed out."""
    written = [query.write(RUN, 0, slot, counted=True) for slot in range(SLOTS)]
    cluster.crash_at_intent = True
    with pytest.raises(DriverCrashError):
        query.commit(RUN, 0, *written)
    cluster.end(written[1].transaction, commit=True)
    cluster.time_out()


def test_the_next_attempt_supplies_the_parts_that_were_lost() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    lost_one_part(cluster, query)
    query.commit(NEXT_RUN, 0, *(query.write(NEXT_RUN, 0, slot, counted=True) for slot in range(SLOTS)))
    assert sorted(cluster.topic) == expected(1)
    assert cluster.decisions[-1].is_committed
    assert not cluster.open


def test_an_attempt_with_other_rows_does_not_complete_a_batch() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    lost_one_part(cluster, query)
    again = [query.write(NEXT_RUN, 0, slot, counted=True) for slot in range(SLOTS)]
    with pytest.raises(CommitFailedError, match=r"1 of its 2 transactions.*1 records are missing"):
        query.commit(NEXT_RUN, 0, again[0], again[1]._replace(digest=99))
    assert cluster.decisions[-1].phase is Phase.PARTIAL
    assert [part.fate for part in cluster.decisions[-1].parts] == [Fate.ABORTED, Fate.COMMITTED]


def test_a_batch_that_a_run_has_completed_since_it_was_shown_is_not_declared() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    lost_one_part(cluster, query)
    shown = query.committer(NEXT_RUN).recover()
    assert shown.phase is Phase.PARTIAL
    query.commit(NEXT_RUN, 0, *(query.write(NEXT_RUN, 0, slot, counted=True) for slot in range(SLOTS)))
    with pytest.raises(ConnectorError, match=r"has changed in the meantime: it is about batch 0, committed"):
        query.committer("operator").declare(0, shown, written=False)
    query.commit(NEXT_RUN, 1, query.write(NEXT_RUN, 1, 0))
    assert sorted(cluster.topic) == [*expected(1), "1/0"]


def test_what_a_sweep_could_not_find_is_aborted_by_a_later_one() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    left = query.write(RUN, 0, 0).transaction.transactional_id
    cluster.moving.add(left)
    query.commit(NEXT_RUN, 0, query.write(NEXT_RUN, 0, 0))
    assert left in cluster.open
    cluster.moving.clear()
    query.committer(NEXT_RUN).commit(Attempt(1, (query.write(NEXT_RUN, 1, 0),), had_failures=True))
    assert not cluster.open


def test_an_attempt_whose_transaction_is_aborted_as_a_leftover_cannot_write_any_more() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    left, kept = query.write(RUN, 0, 1).transaction, query.write(RUN, 0, 0)
    query.committer(RUN).commit(Attempt(0, (kept,), had_failures=True))
    assert cluster.epochs[left.transactional_id] > left.producer_epoch
    assert left.transactional_id not in cluster.open


def test_another_batch_under_a_number_that_is_committed_is_refused() -> None:
    """A checkpoint that is one batch old plans the batch again, and there is more to read by then."""
    cluster = Cluster()
    query = SparkQuery(cluster)
    query.commit(RUN, 0, query.write(RUN, 0, 0, counted=True), offsets="to 100")
    with pytest.raises(CheckpointError, match=r"with 1 rows.*another batch 0 with 1 rows"):
        query.commit(NEXT_RUN, 0, query.write(NEXT_RUN, 0, 0, counted=True), offsets="to 250")
    query.commit(NEXT_RUN, 0, query.write(NEXT_RUN, 0, 0, counted=True)._replace(digest=99), offsets="to 100")
    with pytest.raises(CheckpointError, match="another batch 0"):  # where offsets are not known, rows are compared
        query.commit(NEXT_RUN, 0, query.write(NEXT_RUN, 0, 0, counted=True)._replace(rows=2))
    assert cluster.topic == ["0/0"]


def test_a_copied_checkpoint_is_noticed() -> None:
    cluster = Cluster()
    query = SparkQuery(cluster)
    query.committer(RUN, "file:/one").claim()
    query.committer(NEXT_RUN, "file:/one").claim()
    with pytest.raises(CheckpointError, match="one is a copy of the other"):
        query.committer("0000000c-uuid", "file:/two").claim()


def test_an_empty_control_topic_beside_a_checkpoint_with_batches_is_an_error() -> None:
    query = SparkQuery(Cluster())
    with pytest.raises(CheckpointError, match="knows of no batch before"):
        query.commit(RUN, 7, query.write(RUN, 7, 0))


def test_a_query_that_began_with_empty_batches_is_no_such_error() -> None:
    query = SparkQuery(Cluster())
    query.commit(RUN, 0)
    query.commit(RUN, 1)
    query.commit(RUN, 2, query.write(RUN, 2, 0))
    assert query.cluster.topic == ["2/0"]


FIRST_FORMAT = (
    b'{"query_id": "query-1", "run": "aaaa", "past_runs": ["0000"], "batch": 3, "is_committed": false, '
    b'"driver": ["q-driver", 5, 2, 0], "transactions": [["q-aaaa-0", 7, 1, 0]]}'
)


def test_decisions_of_the_first_format_are_read() -> None:
    old = Decision.from_json(FIRST_FORMAT)
    assert (old.batch, old.phase, old.transactions) == (3, Phase.DECIDED, (Transaction("q-aaaa-0", 7, 1, 0),))
    assert old.has_superseded(Owner("0000"))
    cluster = Cluster(epochs={"q-aaaa-0": 1}, open={"q-aaaa-0": ["3/0"]}, decisions=[old])
    query = SparkQuery(cluster)
    query.commit(RUN, 3, query.write(RUN, 3, 0))  # Spark writes it again: it was decided, and is completed
    assert cluster.topic == ["3/0"]
    query.commit(RUN, 4, query.write(RUN, 4, 0))
    assert cluster.topic == ["3/0", "4/0"]


def test_a_decision_of_a_newer_version_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConnectorError, match="format 9, which a newer version"):
        Decision.from_json(b'{"format": 9}')


def test_a_run_of_a_superseded_pipeline_cannot_claim_though_it_never_decided() -> None:
    cluster = Cluster()

    def committer(run: str, session: str) -> Committer:
        return Committer(cluster, cluster, PREFIX, Query(QUERY_ID, "q", Owner(run, session)))

    committer("", "first").recover()
    committer("spark-1", "first").claim()
    committer("", "second").recover()
    with pytest.raises(FencedError, match="newer run"):
        committer("spark-2", "first").claim()
    committer("spark-3", "second").claim()


def test_who_is_refused_does_not_fence_the_driver_of_the_live_run() -> None:
    """The live run may have handed the driver's transaction to a task, which is writing a batch in it."""
    cluster = Cluster()
    query = SparkQuery(cluster)
    late = query.write(RUN, 0, 0)
    query.committer(NEXT_RUN, "file:/one").claim()
    fenced = cluster.epochs[f"{PREFIX}-driver"]
    with pytest.raises(FencedError, match="newer run"):
        query.committer(RUN).claim()
    with pytest.raises(FencedError, match="newer run"):
        query.commit(RUN, 0, late)
    query.committer(RUN).abort(Attempt(0, (late,)), 1)
    query.committer(RUN).abort(Attempt(0))
    for attempt in (query.committer("0000000c-uuid", "file:/two"), query.committer("", "file:/two")):
        with pytest.raises(CheckpointError, match="one is a copy of the other"):
            attempt.claim()
        with pytest.raises(CheckpointError, match="one is a copy of the other"):
            attempt.recover()
    assert cluster.epochs[f"{PREFIX}-driver"] == fenced
    assert not cluster.open, "its part is aborted all the same"


@pytest.mark.parametrize(
    ("option", "allowed", "used"),
    [
        ("900000", 900_000, [900_000]),
        ("2000", 900_000, [60_000]),
        ("900000", 300_000, [900_000, 60_000, 60_000]),
    ],
    ids=["that of tasks", "at least a minute", "not above what brokers allow"],
)
def test_the_timeout_of_the_driver(option: str, allowed: int, used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A task may write in the driver's transaction, and the others of its batch take as long as theirs allow."""
    asked = []

    async def begin(_cluster: object, transactional_id: str, timeout_ms: int) -> Transaction:
        asked.append(timeout_ms)
        if timeout_ms > allowed:
            raise OptionError("transactionTimeoutMs", "too long")
        return Transaction(transactional_id, 1, 0)

    monkeypatch.setattr(committing, "begin", begin)
    options = sink_options({BOOTSTRAP: "localhost:1", "topic": "t", "transactionTimeoutMs": option})
    with ClusterSession("localhost:1", options.connection, lazily=True) as session:
        coordinator = ClusterCoordinator(session, options)
        for _ in used[-2:]:
            coordinator.begin("q-driver")
    assert asked[: len(used)] == used


@pytest.mark.parametrize("loses_answers", [False, True])
def test_a_driver_whose_request_was_sent_again_is_fenced_before_it_writes_again(loses_answers: bool) -> None:
    cluster = Cluster()
    committer, query = SparkQuery(cluster).committer(RUN), SparkQuery(cluster)
    epochs = []
    for batch in range(3):
        part = query.write(RUN, batch, 0)
        cluster.loses_answers = loses_answers
        committer.commit(Attempt(batch, (part,)))
        cluster.loses_answers = False
        epochs.append(cluster.epochs[f"{PREFIX}-driver"])
    assert sorted(cluster.topic) == ["0/0", "1/0", "2/0"]
    assert (epochs[1] == epochs[0]) != loses_answers
    assert (committer.hand_over() is None) == loses_answers


class ManualClock(SystemClock):
    passed_ms = 0.0

    def monotonic_ms(self) -> float:
        return self.passed_ms


def test_leftovers_of_attempts_that_nobody_knows_of_are_aborted_after_a_minute() -> None:
    """Batches may take an hour each, and readers wait for a two-phase transaction as long as it is open."""
    cluster, clock = Cluster(), ManualClock()
    query = SparkQuery(cluster)
    committer = Committer(cluster, cluster, PREFIX, Query(QUERY_ID, "q", Owner(RUN)), clock)
    left = []
    for batch, passed_ms in enumerate((0, 30_000, 20_000, 20_000, 20_000)):
        clock.passed_ms += passed_ms
        unknown = query.write(RUN, batch, 1).transaction.transactional_id
        committer.commit(Attempt(batch, (query.write(RUN, batch, 0),)))
        left.append(unknown in cluster.open)
    assert left == [False, True, True, False, True]


def test_a_decision_that_does_not_fit_is_refused_before_anything_is_decided() -> None:
    cluster = Cluster(parts_max=1)
    query = SparkQuery(cluster)
    parts = [query.write(RUN, 0, slot) for slot in range(SLOTS)]
    with pytest.raises(NotDecidedError, match="fewer tasks"):
        query.commit(RUN, 0, *parts)
    query.committer(RUN).abort(Attempt(0, tuple(parts)))
    assert not cluster.topic
    assert not cluster.open
    cluster.parts_max = SLOTS
    cluster.crash_at_intent = True
    again = [query.write(NEXT_RUN, 0, slot) for slot in range(SLOTS)]
    with pytest.raises(DriverCrashError):
        query.commit(NEXT_RUN, 0, *again)
    cluster.parts_max = 1
    query.committer("0000000c-uuid").claim()
    assert sorted(cluster.topic) == expected(1), "what is decided is completed, whatever its size"


def job_of_three(cluster: Cluster) -> tuple[Committer, list[Transaction]]:
    query = SparkQuery(cluster)
    return query.committer(RUN), [query.write(RUN, 0, slot).transaction for slot in range(3)]


def test_a_job_of_which_part_is_visible_is_committed_completely() -> None:
    cluster = Cluster()
    committer, transactions = job_of_three(cluster)
    cluster.end(transactions[1], commit=True)
    assert committer.complete_job(transactions)
    assert sorted(cluster.topic) == ["0/0", "0/1", "0/2"]


def test_a_job_of_which_nothing_is_visible_is_aborted() -> None:
    cluster = Cluster()
    committer, transactions = job_of_three(cluster)
    cluster.end(transactions[1], commit=False)
    assert not committer.complete_job(transactions)
    assert not cluster.open
    assert not cluster.topic


def test_a_job_that_lost_a_part_says_what_is_visible() -> None:
    cluster = Cluster()
    committer, transactions = job_of_three(cluster)
    cluster.end(transactions[1], commit=True)
    cluster.end(transactions[2], commit=False)
    with pytest.raises(CommitFailedError, match=r"1 of the 3 transactions .*the other 2 are visible"):
        committer.complete_job(transactions)
    assert sorted(cluster.topic) == ["0/0", "0/1"]
