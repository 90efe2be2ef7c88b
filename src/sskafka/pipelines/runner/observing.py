"""Rows that are counted on their way. Streams report the counts with their progress; a batch is asked afterwards."""

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
        """What was counted; None where the rows were not needed, such as those of a batch that was written before.

        Spark waits for ever for an observation whose rows nobody has used, so threads wait here, for a while."""
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
    """What is observed within the block belongs to one batch."""
    counts = BatchCounts()
    token = _batch.set(counts)
    try:
        yield counts
    finally:
        _batch.reset(token)


def observed(rows: DataFrame, name: str, count: Column) -> DataFrame:
    """The rows, counted under a name when they are used."""
    batch = _batch.get()
    return rows.observe(name, count) if batch is None else batch.observe(rows, name, count)
