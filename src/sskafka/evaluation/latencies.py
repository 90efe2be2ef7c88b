"""A histogram of latencies whose buckets grow by 5%.

It is accurate enough for percentiles (within 5%), small enough to be sent between processes, and can be merged.
"""

from collections import Counter
from collections.abc import Mapping
from math import ceil, log
from typing import Any, Self

SMALLEST_MS = 0.01
GROWTH = 1.05

_STEP = log(GROWTH)


class Latencies:
    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.max_ms = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, latency_ms: float, count: int = 1) -> None:
        """Add `count` records with this latency."""
        self.count += count
        self.total_ms += latency_ms * count
        self.max_ms = max(self.max_ms, latency_ms)
        self._buckets[_bucket(latency_ms)] += count

    def merge(self, other: "Latencies") -> None:
        self.count += other.count
        self.total_ms += other.total_ms
        self.max_ms = max(self.max_ms, other.max_ms)
        self._buckets.update(other._buckets)

    @property
    def average_ms(self) -> float:
        return self.total_ms / self.count if self.count else 0.0

    def percentile_ms(self, percent: float) -> float:
        """Return the latency that this percentage of the records did not exceed."""
        wanted = ceil(self.count * percent / 100)
        reached = 0
        for bucket in sorted(self._buckets):
            reached += self._buckets[bucket]
            if reached >= wanted:
                return min(_upper_ms(bucket), self.max_ms)
        return self.max_ms

    def to_json(self) -> dict[str, Any]:
        buckets = {str(bucket): count for bucket, count in self._buckets.items()}
        return {"count": self.count, "total_ms": self.total_ms, "max_ms": self.max_ms, "buckets": buckets}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        latencies = cls()
        latencies.count, latencies.total_ms, latencies.max_ms = (
            values["count"],
            values["total_ms"],
            values["max_ms"],
        )
        latencies._buckets.update({int(bucket): count for bucket, count in values["buckets"].items()})
        return latencies


def _bucket(latency_ms: float) -> int:
    return ceil(log(latency_ms / SMALLEST_MS) / _STEP) if latency_ms > SMALLEST_MS else 0


def _upper_ms(bucket: int) -> float:
    return SMALLEST_MS * GROWTH**bucket
