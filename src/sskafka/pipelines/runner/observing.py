"""Row counts, collected while rows are processed. Streams report them with their progress, a batch at its end."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyspark.sql import Column, DataFrame, Observation

COUNTS_WAIT_S = 10.0


class BatchCounts:
    """The counts of one batch, by the name of the observation."""

    def __init__(self) -> None:
        self._observations: dict[str, Observation] = {}

    def observe(self, rows: DataFrame, name: str, count: Column) -> DataFrame:
        self._observations[name] = Observation(name)
        return rows.observe(self._observations[name], count)

    def collected(self) -> dict[str, int | None]:
        """Return the counts; None if the rows were not used, such as those of a batch that was written before.

        Spark waits forever for an observation whose rows are not used, so threads wait here, for a limited time."""
        found: dict[str, int | None] = dict.fromkeys(self._observations)

        def wait_for(name: str) -> None:
            (found[name],) = map(int, self._observations[name].get.values())

        threads = [threading.Thread(target=wait_for, args=(name,), daemon=True) for name in self._observations]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + COUNTS_WAIT_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return dict(found)


_batch: ContextVar[BatchCounts | None] = ContextVar("counts of a batch", default=None)


@contextmanager
def counting_batch() -> Iterator[BatchCounts]:
    """Assign the observations within the block to one batch."""
    counts = BatchCounts()
    token = _batch.set(counts)
    try:
        yield counts
    finally:
        _batch.reset(token)


def observed(rows: DataFrame, name: str, count: Column) -> DataFrame:
    """Return the rows with an observation that counts them under this name."""
    batch = _batch.get()
    return rows.observe(name, count) if batch is None else batch.observe(rows, name, count)
