"""Spark's daemon of Python workers, which imports what workers need before it forks them.

    python -m sskafka.pipelines.worker_daemon WORKER_MODULE        as Spark starts it (spark.python.daemon.module)

Spark's own daemon does not do this: every process that it forks needs 0.4 s of CPU time to import Arrow and the
connector. A query has several such processes, and all queries of a pipeline start them at once. Importing Arrow and
numpy starts threads, but both handle forks.

Spark's daemon runs a full garbage collection in a worker after each task, which would examine all imported objects for
28 ms of CPU time. The daemon therefore freezes these objects before it forks (see `connector.spark_process`).

Java may end a task before it has read everything from the worker, and closes the socket. Over a Unix domain socket the
worker notices this when it flushes, and Spark's daemon prints a stack trace. Here the worker ends without one.
"""

import gc
import socket
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from pyspark import daemon

TASKS = "pyspark.worker"
_READING = "sskafka.pipelines.connector.source"
_WRITING = "sskafka.pipelines.connector.sink"
PRELOADED = {
    TASKS: (_READING, _WRITING, "pyarrow.compute"),
    "pyspark.sql.worker.plan_data_source_read": (_READING,),
    "pyspark.sql.worker.data_source_pushdown_filters": (_READING,),
    "pyspark.sql.worker.write_into_data_source": (_WRITING,),
    "pyspark.sql.worker.python_streaming_sink_runner": (_WRITING,),
}


def preload(worker_module: str) -> None:
    """Import the module that workers run, and the part of the connector that it uses."""
    for name in (worker_module, *PRELOADED.get(worker_module, ())):
        import_module(name)


def freeze_imported_objects() -> None:
    """Exclude everything that exists now from garbage collections, in this process and in those that it forks."""
    gc.collect()
    gc.freeze()


Worker = Callable[[socket.socket, bool], int]


def ending_quietly(worker: Worker) -> Worker:
    """Return the worker's function, which returns an exit code also if Java has closed the socket."""

    def work(sock: socket.socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except BrokenPipeError:
            return 1

    return work


def main(arguments: Sequence[str]) -> None:
    preload(arguments[0] if arguments else TASKS)
    freeze_imported_objects()
    daemon.worker = ending_quietly(daemon.worker)  # type: ignore[assignment]  # the manager calls it by this name
    daemon.manager()


if __name__ == "__main__":
    main(sys.argv[1:])
