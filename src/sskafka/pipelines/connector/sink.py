"""Writing: what Spark calls for `df.write` and `df.writeStream.format("sskafka")`.

Writers are made anew in many processes and pickled to tasks: they hold options only. What ties the tasks and commits
of one run together comes from Spark: the query's id and run in each task's properties.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError
from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.committing import Batch, cluster_committer, transactional_id
from sskafka.pipelines.connector.errors import ConnectorError, OptionError
from sskafka.pipelines.connector.options import Guarantee, SinkOptions
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.producing import TaskProducer

logger = logging.getLogger(__name__)

HEADERS_TYPE_NAME = "array<struct<key:string,value:binary>>"

_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"  # Spark puts each run of a streaming query into a job group of the run's id


@dataclass(frozen=True)
class TaskWritten(WriterCommitMessage):
    """What a task hands to the driver."""

    query_id: str
    run: str
    records: int
    transaction: Transaction | None


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Refuses, before any task runs, a table that cannot be written to a topic."""
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


def _write(options: SinkOptions, name: str | None, batches: Iterator[pa.RecordBatch], slot: int) -> TaskProducer:
    """Writes everything and flushes; the transaction, if any, stays open."""

    async def work() -> TaskProducer:
        async with Cluster(options.bootstrap, options.connection) as cluster:
            producer = TaskProducer(cluster, options, name, slot)
            for batch in batches:
                await producer.write(batch)
            await producer.flush()
            return producer

    return asyncio.run(work())


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        context = TaskContext.get()
        assert context is not None, "write() runs in a task"
        query_id = context.getLocalProperty(_QUERY_ID) or ""
        run = context.getLocalProperty(_RUN_ID) or ""
        slot = context.partitionId()
        name = None
        if self._options.guarantee is Guarantee.EXACTLY_ONCE:
            name = transactional_id(self._prefix(query_id), run, slot)
        producer = _write(self._options, name, iterator, slot)
        return TaskWritten(query_id, run, producer.records, producer.transaction)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        written = _written(messages)
        if self._options.guarantee is not Guarantee.EXACTLY_ONCE or not written:
            return
        query_id, run = written[0].query_id, written[0].run
        with _patient_session(self._options) as session:
            committer = cluster_committer(session, self._options, self._prefix(query_id))
            committer.commit(Batch(query_id, run, batchId), _open(written))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _abort(self._options, _written(messages))

    def _prefix(self, query_id: str) -> str:
        return self._options.transactional_id_prefix or f"spark-{query_id}"


class BatchWriter(DataSourceArrowWriter):
    """One job: its transactions are committed when all tasks are done. A job that is run again writes again."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        context = TaskContext.get()
        assert context is not None, "write() runs in a task"
        slot = context.partitionId()
        name = None
        if self._options.guarantee is Guarantee.EXACTLY_ONCE:
            name = transactional_id(self._prefix, self._job, slot)
        producer = _write(self._options, name, iterator, slot)
        return TaskWritten("", self._job, producer.records, producer.transaction)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        transactions = _open(_written(messages))
        if transactions:
            with _patient_session(self._options) as session:
                cluster_committer(session, self._options, self._prefix).commit_job(transactions)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._options, _written(messages))

    @property
    def _prefix(self) -> str:
        return self._options.transactional_id_prefix or "spark-write"


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[TaskWritten]:
    """What tasks said; those that failed said nothing."""
    return [message for message in messages if isinstance(message, TaskWritten)]


def _open(written: Sequence[TaskWritten]) -> list[Transaction]:
    return [one.transaction for one in written if one.transaction is not None]


def _patient_session(options: SinkOptions) -> ClusterSession:
    """The tasks have just talked to the brokers: when they are away now, they may be back soon."""
    return ClusterSession(options.bootstrap, options.connection, patiently=True)


def _abort(options: SinkOptions, written: Sequence[TaskWritten]) -> None:
    """Says nothing of its own when brokers are away: the query fails already, and for a better reason."""
    transactions = _open(written)
    if not transactions:
        return
    try:
        with ClusterSession(options.bootstrap, options.connection) as session:
            cluster_committer(session, options, "").abort(transactions)
    except ClientError as error:
        logger.warning("the brokers are away, transactions stay open until they time out: %s", error)
