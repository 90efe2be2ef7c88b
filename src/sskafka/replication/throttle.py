"""Replication quotas: bytes a second for replicas that catch up or move to another log directory.

Rates are set on a broker (`leader.replication.throttled.rate`, `follower.replication.throttled.rate`,
`replica.alter.log.dirs.io.max.bytes.per.second`), the replicas of the first two on a topic. In-sync replicas are never
throttled, because that would delay producers.

A rate is measured as in Kafka, over the newest samples of one window each:

    samples    |--- window ---|--- window ---|-- now
    rate       all bytes of the samples, divided by the time since the oldest began, but at least one window

Batches are never split, so one take may exceed the rate by far. It expires together with its sample: nobody waits
longer than all samples last.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

ALL = frozenset({"*"})
SAMPLES = 11
WINDOW_MS = 1000


class ThrottledSides(NamedTuple):
    """Whether this broker's replica is throttled as a leader that sends, and as a follower that fetches."""

    sending: bool = False
    fetching: bool = False


class TopicThrottle:
    """The replicas of a topic that are throttled."""

    def __init__(self, topic_config: Mapping[str, Any]) -> None:
        self._leaders = frozenset(topic_config["leader.replication.throttled.replicas"])
        self._followers = frozenset(topic_config["follower.replication.throttled.replicas"])

    def sides_of(self, partition: int, broker_id: int) -> ThrottledSides:
        pair = f"{partition}:{broker_id}"
        return ThrottledSides(*(replicas == ALL or pair in replicas for replicas in (self._leaders, self._followers)))


class _Sample:
    __slots__ = ("size_bytes", "start_ms")

    def __init__(self, start_ms: float) -> None:
        self.start_ms = start_ms
        self.size_bytes = 0


class Throttle:
    __slots__ = ("_monotonic_ms", "_rate", "_recent", "_samples_max", "_window_ms", "on_changed")

    def __init__(
        self, monotonic_ms: Callable[[], float], samples_max: int = SAMPLES, window_ms: int = WINDOW_MS
    ) -> None:
        self._monotonic_ms = monotonic_ms
        self._samples_max = samples_max
        self._window_ms = window_ms
        self._rate: int | None = None
        self._recent: deque[_Sample] = deque()
        self.on_changed: Callable[[], None] | None = None
        """Called when the rate changes: waiters must compute their wait again."""

    def limit_to(self, bytes_per_second: int | None) -> None:
        """Set the rate. None: no limit."""
        if bytes_per_second != self._rate:
            self._rate = bytes_per_second
            if self.on_changed is not None:
                self.on_changed()

    @property
    def window_bytes(self) -> int | None:
        """Bytes that the rate allows in one window, or None without a limit."""
        return None if self._rate is None else self._rate * self._window_ms // 1000

    def take(self, size_bytes: int) -> None:
        if self._rate is None:
            return
        now_ms = self._monotonic_ms()
        self._forget_old(now_ms)
        if not self._recent or now_ms - self._recent[-1].start_ms >= self._window_ms:
            self._recent.append(_Sample(now_ms))
        self._recent[-1].size_bytes += size_bytes

    def wait_ms(self) -> float:
        """Return how long the rate stays exceeded if nothing more is taken, 0 if it is not exceeded."""
        if self._rate is None:
            return 0
        now_ms = self._monotonic_ms()
        self._forget_old(now_ms)
        return max(0.0, self._free_at_ms(self._rate) - now_ms)

    def _free_at_ms(self, rate: int) -> float:
        """Return when the remaining samples are within the rate."""
        kept_ms = self._samples_max * self._window_ms
        left_bytes = sum(sample.size_bytes for sample in self._recent)
        at_ms = float("-inf")
        for sample in self._recent:
            allowed_ms = left_bytes * 1000 / rate if rate else float("inf")
            if allowed_ms <= self._window_ms:
                return at_ms
            if allowed_ms < kept_ms:
                return max(at_ms, sample.start_ms + allowed_ms)
            at_ms = sample.start_ms + kept_ms
            left_bytes -= sample.size_bytes
        return at_ms

    def _forget_old(self, now_ms: float) -> None:
        kept_ms = self._samples_max * self._window_ms
        while self._recent and now_ms - self._recent[0].start_ms >= kept_ms:
            self._recent.popleft()
