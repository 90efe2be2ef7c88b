"""The writers that Spark calls for `df.write` and `df.writeStream.format("sskafka")`.

Spark creates writers in many processes and pickles them to tasks, so they contain options only. The id of the query and
of its run connect the tasks and commits of one run; Spark passes them in the properties of each task.
"""

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from sskafka.client.errors import ClientError
from sskafka.client.transactions import Transaction
from sskafka.model.errors import KafkaError
from sskafka.pipelines.connector.checkpoint import offsets_digest
from sskafka.pipelines.connector.commit_log import CommitLog
from sskafka.pipelines.connector.commit_protocol import Attempt, CommitProtocol, Handover
from sskafka.pipelines.connector.committing import Committer, cluster_committer, prefix_of, query_of
from sskafka.pipelines.connector.decision import Decision, Owner, Part
from sskafka.pipelines.connector.errors import CommitFailedError, ConnectorError, OptionError
from sskafka.pipelines.connector.handover import HandoverFile
from sskafka.pipelines.connector.kept_sessions import kept_session
from sskafka.pipelines.connector.options import Guarantee, SinkOptions
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.producing import TaskProducer
from sskafka.pipelines.connector.spark_process import skip_imported_objects
from sskafka.pipelines.connector.transactions import ids_of_this_process

logger = logging.getLogger(__name__)

HEADERS_TYPE_NAME = "array<struct<key:string,value:binary>>"

SMALL_BYTES_MAX = 1 << 20
"""Largest part that is collected to be written in the driver's transaction."""

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
REUSED = "SPARK_REUSE_WORKER"
"""The environment variable that Spark sets if a process lives on after its commit."""
_RUN_ID = "spark.jobGroup.id"  # Spark puts each run of a streaming query into a job group that has the id of the run


@dataclass(frozen=True)
class TaskWritten(WriterCommitMessage):
    """The result of a task for the driver."""

    query_id: str
    run: str
    records: int
    part: Part | None = None
    epoch: int | None = None
    """The epoch of the query's owner when the task began to write."""
    attempt: int = 0
    handed: Handover | None = None
    """What the driver needs to commit, if the task has written in the transaction of the driver."""

    @property
    def transaction(self) -> Transaction | None:
        return None if self.part is None else self.part.transaction


_epochs: dict[tuple[str, Owner], int] = {}
"""Epochs of the runs that tasks of this process belong to: the first task asks for it."""

_committers: dict[tuple[str, Owner], tuple[ClusterSession, Committer]] = {}
"""Committers, with their sessions, of queries whose batches this process has committed. They know the last decision."""
COMMITTERS_MAX = 32


class OutcomeRecorder:
    """Records the outcome of a batch while Spark begins the next one.

    A process that commits batches waits for Spark between them. A thread uses this time, and the connections of the
    process, which only one thread uses at a time. If the process ends after its commit, the outcome is recorded at
    once."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin the work; call `wait` before."""
        assert self._thread is None, "wait() comes before start()"
        if REUSED not in os.environ:
            work()
            return
        self._thread = threading.Thread(target=work, name="outcome-recorder", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when the last work has ended."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()


recorder = OutcomeRecorder()


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Raise, before any task runs, if the table cannot be written to a topic."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise ConnectorError(f"the column value is missing; there are {', '.join(types)}")
    if "topic" not in types and options.topic is None:
        raise OptionError("topic", "is missing, and there is no column topic either")
    allowed: dict[str, tuple[type, ...]] = {
        "key": (BinaryType, StringType),
        "value": (BinaryType, StringType),
        "topic": (StringType,),
        "partition": (IntegerType,),
    }
    for name, kinds in allowed.items():
        if name in types and not isinstance(types[name], kinds):
            names = " or ".join(kind().simpleString() for kind in kinds)
            raise ConnectorError(f"the column {name} is {types[name].simpleString()}; it must be {names}")
    headers = types["headers"].simpleString() if "headers" in types else HEADERS_TYPE_NAME
    if headers != HEADERS_TYPE_NAME:
        raise ConnectorError(f"the column headers is {headers}; it must be {HEADERS_TYPE_NAME}")


def _write(
    options: SinkOptions,
    name: str | None,
    batches: Iterator[pa.RecordBatch],
    slot: int,
    *,
    two_phase: bool = False,
) -> TaskProducer:
    """Write all rows and flush; the transaction, if any, stays open. If that fails, nobody will commit it: end it."""
    skip_imported_objects()

    async def work(producer: TaskProducer) -> TaskProducer:
        try:
            for batch in batches:
                await producer.write(batch)
            await producer.flush()
        except Exception:
            await producer.abandon()
            raise
        return producer

    with kept_session(options.bootstrap, options.connection) as session:
        return session.run(work(TaskProducer(session.cluster, options, name, slot, two_phase=two_phase)))


def _with_first(batches: Iterator[pa.RecordBatch]) -> tuple[pa.RecordBatch | None, Iterator[pa.RecordBatch]]:
    """Return the first batch that has rows, and an iterator over all batches starting with it."""
    for batch in batches:
        if batch.num_rows:
            return batch, chain((batch,), batches)
    return None, iter(())


def _collected(batches: Iterator[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first batches, and whether they are all and together small."""
    found: list[pa.RecordBatch] = []
    for batch in batches:
        found.append(batch)
        if sum(one.nbytes for one in found) > SMALL_BYTES_MAX:
            return found, False
    return found, True


class QueryBatch(NamedTuple):
    """The batch that a task writes, and the run and query that it belongs to."""

    query_id: str
    run: str
    number: int


def _task_context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        context = _task_context()
        batch = QueryBatch(
            context.getLocalProperty(_QUERY_ID) or "",
            context.getLocalProperty(_RUN_ID) or "",
            int(context.getLocalProperty(_BATCH_ID) or -1),
        )
        return self.write_as(batch, iterator)

    def write_as(self, of: QueryBatch, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of a task for this batch."""
        query_id, run, batch = of
        context = _task_context()
        slot, attempt = context.partitionId(), context.attemptNumber()
        if self._options.guarantee is not Guarantee.EXACTLY_ONCE:
            return TaskWritten(query_id, run, _write(self._options, None, iterator, slot).records)
        first, batches = _with_first(iterator)
        if first is None:
            return TaskWritten(query_id, run, 0, attempt=attempt)
        epoch = self._epoch(query_id, run)
        collected, is_small = _collected(batches)
        handed = self._write_handed(of, epoch, collected, slot) if is_small else None
        if handed is not None:
            (part,) = handed.decision.parts
            return TaskWritten(query_id, run, part.rows, part, epoch, attempt, handed)
        name = ids_of_this_process().next_id(self._prefix(query_id), epoch, batch)
        producer = _write(self._options, name, chain(collected, batches), slot, two_phase=True)
        return TaskWritten(query_id, run, producer.records, producer.part, epoch, attempt)

    def _write_handed(
        self, of: QueryBatch, epoch: int, batches: Sequence[pa.RecordBatch], slot: int
    ) -> Handover | None:
        """Write in the driver's transaction, if a commit on this machine has handed it over.

        Return None if the task must write in a transaction of its own, also because the brokers refuse this one:
        another process has taken the driver's id then, and nobody commits what was written here."""
        handover = self._handover_file(of.query_id).take()
        if handover is None:
            return None
        protocol = CommitProtocol(query_of(self._options, of.query_id, self._owner(of.run)))

        def decide(part: Part) -> Decision | None:
            attempt = Attempt(of.number, (part,), offsets_digest(self._options.checkpoint, of.number))
            return protocol.decided_with_rows(handover.decision, epoch, attempt)

        async def work(producer: TaskProducer, log: CommitLog) -> Handover | None:
            for batch in batches:
                await producer.write(batch)
            return await producer.flush_with_decision(log, decide)

        skip_imported_objects()
        try:
            with kept_session(self._options.bootstrap, self._options.connection) as session:
                log = CommitLog(session, self._options, self._prefix(of.query_id), of.query_id)
                producer = TaskProducer(session.cluster, self._options, None, slot, handed=handover)
                return session.run(work(producer, log))
        except KafkaError as error:
            logger.info("the task writes in a transaction of its own: %s", error)
            return None

    def _epoch(self, query_id: str, run: str) -> int:
        """Return the epoch of the run.

        It is claimed before the first record, so decisions of older runs are settled then."""
        known = (query_id, self._owner(run))
        if known not in _epochs:
            with kept_session(self._options.bootstrap, self._options.connection) as session:
                _epochs[known] = self._committer(session, query_id, run).claim()
        return _epochs[known]

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        written = _written(messages)
        if self._options.guarantee is not Guarantee.EXACTLY_ONCE or not written:
            return
        recorder.wait()
        with kept_session(self._options.bootstrap, self._options.connection) as session:
            committer = self._kept_committer(session, written[0].query_id, written[0].run)
            handovers = self._handover_file(written[0].query_id)
            attempt = self._attempt(written, batchId)
            left = handovers.take() if attempt.handed is None else None
            if left is not None:
                committer.take_back(left)
            committer.commit_unrecorded(attempt, _epoch_of(written))
        if committer.has_unrecorded:
            recorder.start(partial(self._record, session, committer, handovers))
        else:
            _hand_over(committer, handovers)

    def _record(self, committed_with: ClusterSession, committer: Committer, handovers: HandoverFile) -> None:
        """Record the outcome of the batch. If this fails, the next commit reads the decision and settles it."""
        try:
            with kept_session(self._options.bootstrap, self._options.connection) as session:
                if session is committed_with:
                    committer.record()
                    _hand_over(committer, handovers)
        except (ClientError, KafkaError, ConnectorError) as error:
            logger.warning("the outcome of a batch was not recorded; the next commit settles it: %s", error)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Abort the batch. Errors are only logged: the query has failed already, for a reason that says more."""
        written = _written(messages)
        if self._options.guarantee is not Guarantee.EXACTLY_ONCE or not written:
            return
        try:
            with ClusterSession(self._options.bootstrap, self._options.connection) as session:
                committer = self._committer(session, written[0].query_id, written[0].run)
                committer.abort(self._attempt(written, batchId), _epoch_of(written))
        except (ClientError, KafkaError, ConnectorError) as error:
            logger.warning("batch %d was not aborted; the next run settles it: %s", batchId, error)

    def _attempt(self, written: Sequence[TaskWritten], batch: int) -> Attempt:
        parts = tuple(one.part for one in written if one.part is not None)
        offsets = offsets_digest(self._options.checkpoint, batch)
        had_failures = any(one.attempt > 0 for one in written)
        handed = next((one.handed for one in written if one.handed is not None), None)
        return Attempt(batch, parts, offsets, had_failures, handed, len(written))

    def _prefix(self, query_id: str) -> str:
        return prefix_of(self._options.transactional_id_prefix, query_id)

    def _handover_file(self, query_id: str) -> HandoverFile:
        return HandoverFile(self._options.bootstrap, self._prefix(query_id))

    def _committer(self, session: ClusterSession, query_id: str, run: str) -> Committer:
        return cluster_committer(session, self._options, query_id, self._owner(run))

    def _kept_committer(self, session: ClusterSession, query_id: str, run: str) -> Committer:
        """Return the committer of an earlier batch of the run if it used this session; an error ends both."""
        key = (query_id, self._owner(run))
        its_session, committer = _committers.pop(key, (None, None))
        if committer is None or its_session is not session:
            committer = self._committer(session, query_id, run)
        _committers[key] = session, committer
        while len(_committers) > COMMITTERS_MAX:
            del _committers[next(iter(_committers))]
        return committer

    def _owner(self, run: str) -> Owner:
        return Owner(run, self._options.pipeline_run)


def _hand_over(committer: Committer, handovers: HandoverFile) -> None:
    """Let a task of the next batch write in the driver's transaction."""
    handover = committer.hand_over()
    if handover is not None:
        handovers.store(handover)


def _epoch_of(written: Sequence[TaskWritten]) -> int | None:
    return next((one.epoch for one in written if one.epoch is not None), None)


class NumberedBatchWriter(DataSourceArrowWriter):
    """A job that writes one numbered batch of a query, as `foreachBatch` does.

    A batch that is written again is dropped."""

    def __init__(self, options: SinkOptions) -> None:
        self._stream = StreamWriter(options)
        self._batch = QueryBatch(options.query_id, options.query_run, options.batch)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        return self._stream.write_as(self._batch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._stream.commit(messages, self._batch.number)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._stream.abort(messages, self._batch.number)


class BatchWriter(DataSourceArrowWriter):
    """A batch job: its transactions are committed when all tasks are done. A job that is run again writes again."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        context = _task_context()
        slot = context.partitionId()
        name = None
        if self._options.guarantee is Guarantee.EXACTLY_ONCE:
            prefix = prefix_of(self._options.transactional_id_prefix, self._job)
            name = f"{prefix}-{slot}-{context.taskAttemptId()}"
        producer = _write(self._options, name, iterator, slot)
        return TaskWritten("", self._job, producer.records, producer.part, attempt=context.attemptNumber())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        written = _written(messages)
        transactions = _open(written)
        if transactions:
            with _patient_session(self._options) as session:
                self._committer(session).commit_job(transactions, had_failures=any(one.attempt for one in written))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the job. If every task has returned its result, the commit has failed, perhaps halfway: complete it."""
        written = _written(messages)
        transactions = _open(written)
        if not transactions:
            return
        if len(written) == len(messages):
            self._complete(transactions)
            return
        try:
            with ClusterSession(self._options.bootstrap, self._options.connection) as session:
                self._committer(session).abort_job(transactions)
        except ClientError as error:
            logger.warning("the brokers are not available; transactions stay open until they time out: %s", error)

    def _complete(self, transactions: Sequence[Transaction]) -> None:
        try:
            with _patient_session(self._options) as session:
                if self._committer(session).complete_job(transactions):
                    logger.error(
                        "the commit of the job failed and was completed: all records are visible once, so do "
                        "not run the job again"
                    )
        except CommitFailedError as error:
            logger.error("the commit of the job cannot be completed: %s", error)
        except (ClientError, KafkaError) as error:
            logger.error(
                "the commit of the job was not completed, so part of its records may be visible. Running it "
                "again would write those twice; `sskafka transaction list` shows what is open: %s",
                error,
            )

    def _committer(self, session: ClusterSession) -> Committer:
        return cluster_committer(session, self._options, self._job, Owner(self._job))


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[TaskWritten]:
    """Return the results of the tasks that succeeded."""
    return [message for message in messages if isinstance(message, TaskWritten)]


def _open(written: Sequence[TaskWritten]) -> list[Transaction]:
    return [one.transaction for one in written if one.transaction is not None]


def _patient_session(options: SinkOptions) -> ClusterSession:
    """Return a session that waits for brokers: tasks have just reached them, so an outage may be short."""
    return ClusterSession(options.bootstrap, options.connection, waits=True)
