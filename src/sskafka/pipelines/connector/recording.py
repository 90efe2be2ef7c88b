"""Records the outcome of a batch while Spark begins the next one.

A process that commits batches waits for Spark between them. A thread uses this time, and the connections of the
process, which only one thread uses at a time.
"""

import os
import threading
from collections.abc import Callable

REUSED = "SPARK_REUSE_WORKER"
"""The environment variable that Spark sets if a process lives on after its commit."""


class OutcomeRecorder:
    """Runs one piece of work at a time: in a thread if the process lives on, otherwise at once."""

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
