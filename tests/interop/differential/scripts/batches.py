"""Record batches as the scripts produce them: with fixed timestamps, so that both systems store the same bytes."""

from typing import Any

from sskafka.records.builder import NewRecord, build_batch

TIMESTAMP_MS = 1_700_000_000_000


def records(*values: str, key: str | None = None, timestamp: int = TIMESTAMP_MS) -> list[NewRecord]:
    """A record for each value, a second apart."""
    return [
        NewRecord(
            None if key is None else key.encode(), value.encode(), (("n", b"%d" % index),), timestamp + 1000 * index
        )
        for index, value in enumerate(values)
    ]


def batch(*values: str, key: str | None = None, timestamp: int = TIMESTAMP_MS, **options: Any) -> bytes:
    return bytes(build_batch(records(*values, key=key, timestamp=timestamp), **options))
