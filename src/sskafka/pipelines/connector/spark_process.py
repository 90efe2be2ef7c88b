"""Spark's Python processes, in which the connector runs: what their garbage collections examine, and how they end.

Spark's daemon collects garbage in a process after each task, plan and commit. With Arrow, pandas and the connector
imported, a collection takes 20 to 40 ms of CPU time, and a micro-batch has four of them.

Java closes the socket of a process that it no longer needs, for instance when Ctrl+C ends a run. Over a Unix domain
socket the process notices that when it flushes, and Spark's daemon prints the BrokenPipeError among the messages of the
run. The daemon of tasks is ours (`worker_daemon`); the daemons of planning are always Spark's own.
"""

import gc
import sys
import traceback
from itertools import count
from types import ModuleType
from typing import Any

FREEZES_MAX = 8
"""A process imports modules in its first tasks. Later objects are collected as usual."""

_tasks = count(1)
SPARKS_DAEMON = "pyspark.daemon"


def skip_imported_objects() -> None:
    """Exclude the objects that have survived the last collection from the next ones, in the first tasks of a process.

    Call at the start of a task: the daemon has just collected the garbage of the task before."""
    if next(_tasks) <= FREEZES_MAX:
        gc.freeze()


class _QuietTraceback:
    """The module `traceback` as Spark's daemon uses it, which prints nothing for a broken pipe."""

    def print_exc(self) -> None:
        if not isinstance(sys.exception(), BrokenPipeError):
            traceback.print_exc()

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)


def end_quietly_without_java(main: ModuleType | None = None) -> None:
    """Call in a process of Spark, before its work begins. Other processes are left as they are."""
    main = main or sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == SPARKS_DAEMON:
        main.traceback = _QuietTraceback()  # type: ignore[attr-defined]
