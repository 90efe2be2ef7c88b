"""Python processes of Spark whose Java has gone: they end without a stack trace.

Java closes the socket of a process that it no longer needs, for instance when Ctrl+C ends a run. Over a Unix domain
socket the process notices that when it flushes, and Spark's daemon prints the BrokenPipeError among the messages of
the run. The daemon of tasks is ours (`worker_daemon`); the daemons of planning are always Spark's own.
"""

import sys
import traceback
from types import ModuleType
from typing import Any

SPARKS_DAEMON = "pyspark.daemon"


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
