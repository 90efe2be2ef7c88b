"""`format("killing")`: the connector with a process that dies at a chosen step. Spark finds it on PYTHONPATH.

The option `dieAt` names the step and `dieFile` a file: the first process that reaches the step makes the file, so that
each death happens once. `dieWho` dies: the `worker` that is there, `java` with it, or alone the `driver` (the worker
goes on while Java, which has lost its driver, ends) or a `broker`. `java`, `driver` and `broker` are process ids.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.types import StructType

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.commit_log import CommitLog, Decision
from sskafka.pipelines.connector.committing import ClusterCoordinator
from sskafka.pipelines.connector.datasource import SSKafkaDataSource
from sskafka.pipelines.connector.options import sink_options
from sskafka.pipelines.connector.sink import StreamWriter, TaskWritten

BATCH = 1
"""Deaths happen in this batch, so that a batch before it is committed."""


class Death:
    def __init__(self, options: Any) -> None:
        self._step = options["dieAt"]
        self._who = options["dieWho"]
        self._file = Path(options["dieFile"])
        self._pid = None if self._who == "worker" else int(options[self._who])

    def at(self, step: str) -> None:
        if step != self._step or self._file.exists():
            return
        self._file.write_text(step)
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
        if self._who in {"worker", "java"}:
            os.kill(os.getpid(), signal.SIGKILL)


class KillingWriter(StreamWriter):
    def __init__(self, options: Any) -> None:
        super().__init__(sink_options(options))
        self._death = Death(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        written = super().write(iterator)
        if written.records and _batch_of_task() >= BATCH:
            self._death.at("task")
        return written

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803  Spark's name
        if batchId >= BATCH:
            _die_in_commit(self._death)
        super().commit(messages, batchId)
        if batchId >= BATCH:
            self._death.at("done")


def _batch_of_task() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.getLocalProperty("streaming.sql.batchId") or -1)


def _die_in_commit(death: Death) -> None:
    write, end = CommitLog.write, ClusterCoordinator.end

    def dying_write(log: CommitLog, decision: Decision) -> None:
        death.at("before the end" if decision.is_committed else "before the intent")
        write(log, decision)
        death.at("after the end" if decision.is_committed else "after the intent")

    def dying_end(coordinator: ClusterCoordinator, transaction: Transaction, *, commit: bool) -> None:
        end(coordinator, transaction, commit=commit)
        death.at("between commits")

    CommitLog.write = dying_write  # type: ignore[method-assign]
    ClusterCoordinator.end = dying_end  # type: ignore[method-assign]


class DefaultSource(SSKafkaDataSource):
    @classmethod
    def name(cls) -> str:
        return "killing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return KillingWriter(self.options)
