"""`format("killing")`: the connector with a process that dies at a chosen step. Spark finds it on PYTHONPATH.

The option `dieAt` names the step and `dieFile` a file: the first process that reaches the step makes the file, so that
each death happens once. `dieWho` dies: the `worker` that is there, `java` with it, or alone the `driver` (the worker
goes on while Java, which has lost its driver, ends) or a `broker`. `java`, `driver` and `broker` are process ids.
Nobody dies with `nobody`: the step waits until a file of the same name with `.resume` is there. With `brokers`, several
process ids with commas between, brokers are paused for `pauseSeconds`. `dieBatch` names the first batch for all that.

Steps of a task: `task begins` (it has its rows, and no transaction yet) and `task`. An attempt that replaces another
and has written its rows makes a file of the same name with `.replaced`, and one that has written in the transaction of
the driver one with `.handed`.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from sskafka.client.cluster import Cluster
from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector import committing
from sskafka.pipelines.connector.commit_log import CommitLog
from sskafka.pipelines.connector.datasource import SSKafkaDataSource
from sskafka.pipelines.connector.decision import Decision
from sskafka.pipelines.connector.options import sink_options
from sskafka.pipelines.connector.sink import NumberedBatchWriter, QueryBatch, StreamWriter, TaskWritten
from sskafka.pipelines.connector.topic_batches import TopicBatches

BATCH = 1
"""The batch in which processes are killed by default, so that a batch before it is committed."""


class Death:
    def __init__(self, options: Any) -> None:
        self._step = options["dieAt"]
        self._who = options["dieWho"]
        self._file = Path(options["dieFile"])
        self._pid = None if self._who in {"worker", "nobody", "brokers"} else int(options[self._who])
        self._brokers = [int(pid) for pid in options.get("brokers", "").split(",") if pid]
        self._pause_s = options.get("pauseSeconds", "0")
        self.batch = int(options.get("dieBatch", BATCH))

    def at(self, step: str) -> None:
        if step != self._step or self._file.exists():
            return
        self._file.write_text(step)
        if self._who == "nobody":
            self._wait()
        if self._who == "brokers":
            self._pause_brokers()
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
        if self._who in {"worker", "java"}:
            os.kill(os.getpid(), signal.SIGKILL)

    def note_replacement(self) -> None:
        self._file.with_suffix(".replaced").touch()

    def note_handover(self) -> None:
        self._file.with_suffix(".handed").touch()

    def _wait(self) -> None:
        while not self._file.with_suffix(".resume").exists():
            time.sleep(0.1)

    def _pause_brokers(self) -> None:
        """They go on by themselves: who paused them may not live so long."""
        for pid in self._brokers:
            os.kill(pid, signal.SIGSTOP)
        resume = f"sleep {self._pause_s}; kill -CONT {' '.join(map(str, self._brokers))}"
        subprocess.Popen(["sh", "-c", resume], start_new_session=True)


class KillingWriter(StreamWriter):
    def __init__(self, options: Any) -> None:
        super().__init__(sink_options(options))
        self._death = Death(options)

    def write_as(self, of: QueryBatch, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        batches = list(iterator)  # Spark takes them back when it kills the attempt
        is_chosen = bool(batches) and of.number >= self._death.batch
        if is_chosen:
            self._death.at("task begins")
        written = super().write_as(of, iter(batches))
        if is_chosen:
            if written.handed is not None:
                self._death.note_handover()
            self._death.at("task")
            if written.attempt:
                self._death.note_replacement()
        return written

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803  Spark's name
        if batchId >= self._death.batch:
            _die_in_commit(self._death)
        super().commit(messages, batchId)
        if batchId >= self._death.batch:
            self._death.at("done")


class KillingBatchWriter(NumberedBatchWriter):
    """Of a batch that foreachBatch writes."""

    def __init__(self, options: Any) -> None:
        super().__init__(sink_options(options))
        self._stream = KillingWriter(options)


class KillingBatches(TopicBatches):
    format_name = "killing"


def _die_in_commit(death: Death) -> None:
    write, end = CommitLog.write, committing.end

    def dying_write(log: CommitLog, decision: Decision, driver: Transaction, *, decides: bool = False) -> None:
        death.at("before the end" if decision.is_committed else "before the intent")
        write(log, decision, driver, decides=decides)
        death.at("after the end" if decision.is_committed else "after the intent")

    async def dying_end(cluster: Cluster, transaction: Transaction, *, commit: bool) -> Transaction:
        ended = await end(cluster, transaction, commit=commit)
        death.at("between commits")
        return ended

    CommitLog.write = dying_write  # type: ignore[method-assign]
    committing.end = dying_end
    committing.IN_FLIGHT_MAX = 1  # one commit after the other


class DefaultSource(SSKafkaDataSource):
    @classmethod
    def name(cls) -> str:
        return "killing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return KillingWriter(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return KillingBatchWriter(self.options)
