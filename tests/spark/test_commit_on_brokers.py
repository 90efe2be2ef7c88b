"""The sink's transactions on real brokers, without Spark: tasks and drivers are calls that may not come to an end."""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner
from waiting import wait_until

from sskafka.cli.commands import app
from sskafka.client.errors import UnknownTopicError
from sskafka.client.transactions import Transaction, add_partitions, describe, end
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector import commit_log, producing, sink
from sskafka.pipelines.connector.commit_log import CommitLog
from sskafka.pipelines.connector.commit_protocol import Attempt
from sskafka.pipelines.connector.committing import Committer, cluster_committer, prefix_of
from sskafka.pipelines.connector.decision import Decision, Fate, Owner, Part, Phase, Place
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.errors import CommitFailedError, FencedError, NotDecidedError, OptionError
from sskafka.pipelines.connector.fetching import read_ranges
from sskafka.pipelines.connector.kept_sessions import close_kept_sessions
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, sink_options, source_options
from sskafka.pipelines.connector.planning import ClusterSession, Planner
from sskafka.pipelines.connector.producing import TaskProducer
from sskafka.pipelines.connector.sink import NumberedBatchWriter, TaskWritten
from sskafka.pipelines.connector.transactions import FENCED, begin, transactional_id
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.recovery import checkpoint_of, recover_topics

QUERY = "query-id"
VISIBLE_WITHIN_S = 30
RECOVERED_WITHIN_S = 20
"""Far less than the timeout of the transactions that a dead driver leaves."""


class Query:
    """One query's tasks, commits and readers."""

    def __init__(self, session: ClusterSession, bootstrap: str, name: str, topic: str = "", **options: str) -> None:
        self._session = session
        self._bootstrap = bootstrap
        self.name = name
        self.prefix = prefix_of(name, QUERY)
        self.topic = topic or name
        given = {BOOTSTRAP: bootstrap, "topic": self.topic, "transactionalIdPrefix": name, **options}
        self.options: SinkOptions = sink_options(given)

    def write(self, run: str, slot: int, *values: int, process: str = "0a") -> Part:
        epoch = self.committer(run).claim()

        async def work() -> Part | None:
            name = transactional_id(self.prefix, epoch, process, slot)
            producer = TaskProducer(self._session.cluster, self.options, name, slot, two_phase=True)
            await producer.write(pa.RecordBatch.from_pydict({"value": [b"%d" % value for value in values]}))
            await producer.flush()
            return producer.part

        part = self._session.run(work())
        assert part is not None
        return part

    def committer(self, run: str) -> Committer:
        return cluster_committer(self._session, self.options, QUERY, Owner(run))

    def commit(self, run: str, batch: int, *parts: Part) -> None:
        self.committer(run).commit(Attempt(batch, parts))

    def log(self) -> CommitLog:
        return CommitLog(self._session, self.options, self.prefix, QUERY)

    def decide(self, run: str, batch: int, *parts: Part) -> None:
        """A driver that dies right behind its intent."""
        intent, driver = self._intent(run, batch, parts)
        self.log().write(intent, driver)

    def begin_to_decide(self, run: str, batch: int, *parts: Part) -> Transaction:
        """A driver that dies between the two: its intent is in the log, in a transaction that is open."""
        intent, driver = self._intent(run, batch, parts)
        partition = TopicPartition(self.options.control_topic, 0)
        self._session.run(add_partitions(self._session.cluster, driver, [partition]))
        record = self.log().record(intent, driver)
        self._session.run(deliver(self._session.cluster, {partition: record}, driver.transactional_id))
        return driver

    def _intent(self, run: str, batch: int, parts: tuple[Part, ...]) -> tuple[Decision, Transaction]:
        self.committer(run).claim()
        driver = self._session.run(begin(self._session.cluster, f"{self.prefix}-driver", 60_000))
        held = self.log().peek()
        assert held is not None
        intent = held.decided(batch, parts, "")
        return (intent if parts else replace(intent, phase=Phase.DECIDED)), driver

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
        query.log().read()  # so that the control topic is there
        return query

    return make


@pytest.fixture
def query(new_query: Callable[[], Query]) -> Query:
    return new_query()


FIRST, SECOND, THIRD, FOURTH = "aaaaaaaa-run", "bbbbbbbb-run", "cccccccc-run", "dddddddd-run"


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
    assert query.committer(SECOND).recover() is not None
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
        query.committer(FIRST).commit_job([first.transaction])


def test_a_decision_behind_an_open_transaction_of_another_query_counts(
    query: Query, new_query: Callable[[], Query], session: ClusterSession
) -> None:
    """All queries decide in one partition; whoever reads there must not stop at what another one has under way, nor
    wait until the brokers abort it."""
    query.commit(FIRST, 0, query.write(FIRST, 0, 1))
    other = new_query()
    other.commit(FIRST, 0, other.write(FIRST, 0, 7))
    dead = other.begin_to_decide(FIRST, 1)
    began = time.monotonic()
    written = query.write(FIRST, 0, 2)
    query.decide(FIRST, 1, written)
    session.run(end(session.cluster, written.transaction, commit=True))
    query.begin_to_decide(FIRST, 2)  # the next run aborts it, so it does not count
    query.commit(SECOND, 1, query.write(SECOND, 0, 2))
    query.commit(SECOND, 2, query.write(SECOND, 0, 3))
    assert query.seen(3) == [1, 2, 3]
    assert time.monotonic() - began < RECOVERED_WITHIN_S
    last = other.log().peek()
    assert last is not None
    assert last.batch == 0  # what is open does not count
    session.run(end(session.cluster, dead, commit=True))
    last = other.log().read()
    assert last is not None
    assert last.batch == 1


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
    for name in ("topic", "dead-letters"):
        checkpoint = Path(checkpoint_of(load_pipeline(file), name))
        checkpoint.mkdir(parents=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": QUERY}))
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


TIMEOUT_MS = 1_000


def wait_for_state(session: ClusterSession, transactional_id: str, state: str) -> None:
    def is_there() -> bool:
        return session.run(describe(session.cluster, transactional_id)).transaction_state == state

    wait_until(is_there, f"{transactional_id} is {state}")


def test_a_decided_batch_is_completed_by_the_abort_that_follows_a_failed_commit(query: Query) -> None:
    written = (query.write(FIRST, 0, 1, 2), query.write(FIRST, 1, 3))
    query.decide(FIRST, 0, *written)
    query.committer(FIRST).abort(Attempt(0, written))
    assert query.seen(3) == [1, 2, 3]
    query.commit(SECOND, 0, query.write(SECOND, 0, 1, 2), query.write(SECOND, 1, 3))
    query.commit(SECOND, 1, query.write(SECOND, 0, 4))
    assert query.seen(4) == [1, 2, 3, 4]


def test_a_batch_that_was_not_decided_is_aborted_at_once(query: Query) -> None:
    written = (query.write(FIRST, 0, 1), query.write(FIRST, 1, 2))
    query.committer(FIRST).abort(Attempt(0, written))
    with pytest.raises(FencedError, match="newer run"):
        query.commit(FIRST, 0, *written)
    query.commit(SECOND, 0, query.write(SECOND, 0, 1), query.write(SECOND, 1, 2))
    assert query.seen(2) == [1, 2]


def test_a_batch_longer_than_the_timeout_is_not_decided_and_may_be_written_again(
    session: ClusterSession, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    """Written with the transactions of brokers that do not allow two-phase commits."""
    slow = Query(session, bootstrap, new_topic(1), transactionTimeoutMs=str(TIMEOUT_MS))
    first = slow.write(FIRST, 0, 1)
    wait_for_state(session, first.transaction.transactional_id, "CompleteAbort")
    with pytest.raises(NotDecidedError, match=r"no longer open.*transactionTimeoutMs.*transaction\.max\.timeout\.ms"):
        slow.commit(FIRST, 0, first, slow.write(FIRST, 1, 2))
    assert slow.read() == []
    slow.commit(SECOND, 0, slow.write(SECOND, 0, 1), slow.write(SECOND, 1, 2))
    assert slow.seen(2) == [1, 2]


def test_a_run_that_slept_in_its_first_batch_ends_and_the_newer_one_goes_on(query: Query) -> None:
    zombies = query.write(FIRST, 0, 1)
    query.commit(SECOND, 0, query.write(SECOND, 0, 1))
    with pytest.raises(FencedError, match="newer run"):
        query.commit(FIRST, 0, zombies)
    with pytest.raises(FencedError, match="newer run"):
        query.write(FIRST, 0, 1)
    query.commit(SECOND, 1, query.write(SECOND, 0, 2))
    query.commit(THIRD, 2, query.write(THIRD, 0, 3))
    assert query.seen(3) == [1, 2, 3]


def test_an_attempt_that_begins_late_harms_nobody_and_is_aborted(query: Query, session: ClusterSession) -> None:
    accepted = query.write(FIRST, 0, 1, process="0a")
    late = query.write(FIRST, 0, 1, process="0b")
    query.committer(FIRST).commit(Attempt(0, (accepted,), had_failures=True))
    assert query.seen(1) == [1]
    wait_for_state(session, late.transaction.transactional_id, "CompleteAbort")
    with pytest.raises(KafkaError) as refused:
        session.run(add_partitions(session.cluster, late.transaction, [TopicPartition(query.topic, 0)]))
    assert refused.value.code in FENCED


def lose_a_part(query: Query, session: ClusterSession) -> None:
    """Batch 0 is decided and its driver dies; the first part is committed, brokers abort the second."""
    kept, lost = query.write(FIRST, 0, 1, 2), query.write(FIRST, 1, 3)
    query.decide(FIRST, 0, kept, lost)
    session.run(end(session.cluster, kept.transaction, commit=True))
    session.run(begin(session.cluster, lost.transaction.transactional_id, 60_000))


def test_parts_that_brokers_aborted_after_the_decision_are_supplied_by_the_next_run(
    query: Query, session: ClusterSession
) -> None:
    lose_a_part(query, session)
    query.commit(SECOND, 0, query.write(SECOND, 0, 1, 2), query.write(SECOND, 1, 3))
    assert query.seen(3) == [1, 2, 3]
    query.commit(SECOND, 1, query.write(SECOND, 0, 4))
    assert query.seen(4) == [1, 2, 3, 4]


def test_what_no_run_can_complete_is_settled_by_hand(
    query: Query, session: ClusterSession, bootstrap: str, tmp_path: Path
) -> None:
    lose_a_part(query, session)
    with pytest.raises(CommitFailedError, match=r"1 of its 2 transactions.*1 records are missing.*pipeline recover"):
        query.commit(SECOND, 0, query.write(SECOND, 0, 1, 2), query.write(SECOND, 1, 99))
    (tmp_path / "metadata").write_text(json.dumps({"id": QUERY}))
    command = [str(tmp_path), "--query-name", query.name, "-b", bootstrap]
    told = recover(*command, "--declare", "missing")
    for part in ("rows are missing", "aborted", "would declare batch 0", "2 rows that are in"):
        assert part in told
    with pytest.raises(CommitFailedError):  # nothing was changed
        query.commit(THIRD, 0, query.write(THIRD, 0, 1, 2), query.write(THIRD, 1, 99))
    assert "1 are missing and stay missing" in recover(*command, "--declare", "written", "--execute")
    query.commit(FOURTH, 0, query.write(FOURTH, 0, 1, 2), query.write(FOURTH, 1, 99))
    query.commit(FOURTH, 1, query.write(FOURTH, 0, 4))
    assert query.seen(3) == [1, 2, 4]


def test_recover_completes_what_was_decided_and_aborts_the_rest(
    query: Query, session: ClusterSession, bootstrap: str, tmp_path: Path
) -> None:
    query.decide(FIRST, 0, query.write(FIRST, 0, 1))
    query.write(FIRST, 5, 99)
    (tmp_path / "metadata").write_text(json.dumps({"id": QUERY}))
    command = [str(tmp_path), "--query-name", query.name, "-b", bootstrap]
    assert "would commit the 1 parts of batch 0 and abort 1 open transactions" in recover(*command)
    assert query.read() == []
    recover(*command, "--execute")
    assert query.seen(1) == [1]
    assert "there is nothing to settle" in recover(*command)


def recover(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["pipeline", "recover", *arguments])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_the_control_topic_survives_a_broker(session: ClusterSession, query: Query) -> None:
    view = session.run(session.cluster.refresh([query.options.control_topic]))
    (partition,) = view.topics[query.options.control_topic].partitions.values()
    brokers = len(session.run(session.cluster.brokers()))
    assert len(partition.replicas) == min(3, brokers)


def test_what_a_query_decided_under_the_prefix_of_an_earlier_version_counts(
    query: Query, session: ClusterSession
) -> None:
    driver = session.run(begin(session.cluster, f"{query.name}-driver", 60_000))
    old = {
        "query_id": QUERY, "run": "old", "past_runs": [], "batch": 4, "is_committed": True,
        "driver": list(driver), "transactions": [],
    }  # fmt: skip
    earlier = CommitLog(session, query.options, query.name)
    partition = TopicPartition(query.options.control_topic, 0)
    (payload,) = payloads([Row(query.name.encode(), json.dumps(old).encode())])
    session.run(deliver(session.cluster, {partition: framed(payload, timestamp=1)}, None))
    assert earlier.read() is not None
    query.commit(SECOND, 4, query.write(SECOND, 0, 99))  # is in the topic already
    query.commit(SECOND, 5, query.write(SECOND, 0, 5))
    assert query.seen(1) == [5]


def test_a_broker_that_has_not_heard_of_the_control_topic_does_not_make_the_query_begin_anew(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.commit(FIRST, 0, query.write(FIRST, 0, 1))
    asked = commit_log.list_offsets
    answers = iter([UnknownTopicError("there is no topic")])

    async def stale(*arguments: Any, **options: Any) -> Any:
        for error in answers:
            raise error
        return await asked(*arguments, **options)

    monkeypatch.setattr(commit_log, "list_offsets", stale)
    found = query.log().read()
    assert found is not None
    assert found.batch == 0


class OneTask:
    """What Spark tells a task of a job that is no stream."""

    def __init__(self, slot: int) -> None:
        self._slot = slot

    def partitionId(self) -> int:
        return self._slot

    def attemptNumber(self) -> int:
        return 0


class Batches:
    """Jobs that write batches of one query, as `foreachBatch` makes them."""

    def __init__(self, bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._options = {BOOTSTRAP: bootstrap, "topic": topic, "queryId": QUERY, "transactionalIdPrefix": topic}
        self._monkeypatch = monkeypatch

    def job(self, run: str, batch: int, *tasks: Sequence[int]) -> tuple[NumberedBatchWriter, list[Any]]:
        """Return the writer and the results of its tasks; nothing is committed."""
        options = sink_options({**self._options, "queryRun": run, "batchId": str(batch)})
        writer, written = NumberedBatchWriter(options), []
        for slot, values in enumerate(tasks):
            self._monkeypatch.setattr(sink.TaskContext, "get", classmethod(lambda _, slot=slot: OneTask(slot)))
            rows = pa.RecordBatch.from_pydict({"value": [b"%d" % value for value in values]})
            written.append(writer.write(iter([rows])))
        return writer, written


def test_a_batch_of_a_job_is_committed_once_whoever_writes_it_again(
    query: Query, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(bootstrap, query.topic, monkeypatch)
    try:
        for run, batch, tasks in (
            (FIRST, 0, ([1, 2], [3])),
            (FIRST, 1, ([4],)),
            (SECOND, 1, ([4],)),  # the first run died before Spark had heard of its commit
            (SECOND, 2, ([], [])),
            (SECOND, 3, ([5],)),
        ):
            writer, written = batches.job(run, batch, *tasks)
            writer.commit(written)
        assert query.seen(5) == [1, 2, 3, 4, 5]
        older, written_by_older = batches.job(SECOND, 4, [6])
        writer, written = batches.job(THIRD, 4, [6])
        with pytest.raises((FencedError, NotDecidedError)):  # it looks at its transactions first, which are aborted
            older.commit(written_by_older)
        older.abort(written_by_older)
        writer.commit(written)
        assert query.seen(6) == [1, 2, 3, 4, 5, 6]
    finally:
        close_kept_sessions()


def test_a_task_that_fails_ends_its_transaction(
    query: Query, session: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producing, "_COLLECTED_BYTES_MAX", 0)

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"value": [b"1"]})
        raise ValueError("a row is wrong")

    with pytest.raises(ValueError, match="a row is wrong"):
        sink._write(query.options, "fails", rows(), 0, two_phase=True)
    wait_for_state(session, "fails", "CompleteAbort")


def many_parts(count: int) -> list[Part]:
    draw = random.Random(count)
    return [
        Part(
            Transaction(f"name-query-id-7-{draw.randbytes(6).hex()}-{slot}", draw.randrange(1 << 40), slot % 9),
            slot,
            draw.randrange(1 << 20),
            draw.randrange(1 << 40),
            Place("a topic", slot % 50, draw.randrange(1 << 40)),
        )
        for slot in range(count)
    ]


def test_a_decision_of_very_many_parts_is_written_and_settled(
    new_query: Callable[[], Query], session: ClusterSession
) -> None:
    """Their text is too large for the default of max.message.bytes, and that of the outcome is larger still."""
    query, other = new_query(), new_query()
    query.committer(FIRST).claim()
    other.begin_to_decide(FIRST, 0)
    log, draw = query.log(), random.Random(1)
    held = log.peek()
    assert held is not None
    driver = session.run(begin(session.cluster, f"{query.prefix}-driver", 60_000))
    intent = held.decided(0, many_parts(40_000), "")
    assert len(log.record(intent, driver)) > 1_048_588
    log.write(intent, driver, decides=True)
    assert log.read() == intent
    settled = intent.settled(part._replace(fate=draw.choice(list(Fate))) for part in intent.parts)
    assert len(log.record(settled, driver)) < len(log.record(intent, driver)) + 2 * len(intent.parts)
    log.write(settled, driver)
    other.committer(SECOND).claim()
    assert query.log().read() == settled


def test_a_decision_that_does_not_fit_into_an_old_control_topic_is_refused(
    session: ClusterSession, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    query = Query(session, bootstrap, new_topic(2), controlTopic=new_topic(1))
    query.committer(FIRST).claim()
    log = query.log()
    held = log.peek()
    assert held is not None
    driver = session.run(begin(session.cluster, f"{query.prefix}-driver", 60_000))
    for count in (2_000, 40_000):
        intent = held.decided(0, many_parts(count), "")
        with (
            pytest.raises(NotDecidedError, match=r"40000 tasks.*1048588.*fewer tasks")
            if count > 5_000
            else nullcontext()
        ):
            log.write(intent, driver, decides=True)
    last = log.read()
    assert last is not None
    assert len(last.parts) == 2_000


def test_a_batch_job_whose_commit_failed_halfway_is_completed(query: Query, session: ClusterSession) -> None:
    """Only if all tasks have returned their results: otherwise the job has failed, and nothing was committed."""
    writer = sink.BatchWriter(query.options)
    committed, left = (TaskWritten("", "job", 1, query.write(FIRST, slot, slot)) for slot in range(2))
    assert committed.transaction is not None
    session.run(end(session.cluster, committed.transaction, commit=True))
    writer.abort([committed, left])
    assert query.seen(2) == [0, 1]
    unseen, failed = (TaskWritten("", "job", 1, query.write(FIRST, slot, slot, process="0c")) for slot in (2, 3))
    writer.abort([unseen, None])
    writer.abort([failed])
    for one in (unseen, failed):
        assert one.transaction is not None
        wait_for_state(session, one.transaction.transactional_id, "CompleteAbort")
