"""Garbage collections of Spark's Python processes, which must not examine everything that the connector has imported.

Spark's daemon collects garbage in a process after each task, plan and commit. With Arrow, pandas and the connector
imported, a collection takes 20 to 40 ms of CPU time, and a micro-batch has four of them.
"""

import gc
from itertools import count

FREEZES_MAX = 8
"""A process imports modules in its first tasks. Later objects are collected as usual."""

_tasks = count(1)


def skip_imported_objects() -> None:
    """Exclude the objects that have survived the last collection from the next ones, in the first tasks of a process.

    Call at the start of a task: the daemon has just collected the garbage of the task before."""
    if next(_tasks) <= FREEZES_MAX:
        gc.freeze()
