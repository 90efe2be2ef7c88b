"""Measured rates, and how long a client that exceeds one must wait. Time is an argument, in milliseconds.

`SampledRate` is Apache Kafka's Rate: a number of samples, each one window long. The rate is the sum of the samples over
the time since the oldest, but at least over all windows except the current one, so that a burst counts as an average.
`TokenBucket` is Kafka's TokenBucket: it fills at the rate of the quota, up to what the windows hold.
"""

from collections import deque


class SampledRate:
    __slots__ = ("_samples", "_window_ms", "_windows", "last_ms")

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._samples: deque[list[float]] = deque()
        """Start and sum of each sample, the oldest first."""
        self.last_ms = 0.0

    def record(self, amount: float, now_ms: float) -> None:
        samples = self._samples
        self.last_ms = now_ms
        if samples and now_ms - samples[-1][0] < self._window_ms:
            samples[-1][1] += amount
            return
        samples.append([now_ms, amount])
        self._forget_old(now_ms)

    def throttle_ms(self, limit: float, now_ms: float) -> float:
        """Return how long to wait until the rate is `limit` a second; 0 if the limit is not exceeded."""
        self._forget_old(now_ms)
        if not self._samples:
            return 0.0
        elapsed_ms = now_ms - self._samples[0][0]
        missing = self._windows - 1 - int(elapsed_ms // self._window_ms)
        elapsed_ms += max(0, missing) * self._window_ms
        rate = sum(total for _, total in self._samples) / max(elapsed_ms, 1.0) * 1000
        return (rate - limit) / limit * elapsed_ms if rate > limit else 0.0

    def _forget_old(self, now_ms: float) -> None:
        oldest_ms = now_ms - self._windows * self._window_ms
        while self._samples and self._samples[0][0] < oldest_ms:
            self._samples.popleft()


class TokenBucket:
    __slots__ = ("_filled_ms", "_tokens", "last_ms")

    def __init__(self, burst: float, now_ms: float) -> None:
        self._tokens = burst
        self._filled_ms = self.last_ms = now_ms

    def wait_ms(self, limit: float, burst: float, now_ms: float) -> float:
        """Return how long to wait until no tokens are owed, at `limit` tokens a second; 0 if none are owed."""
        self.last_ms = now_ms
        self._tokens = min(burst, self._tokens + (now_ms - self._filled_ms) / 1000 * limit)
        self._filled_ms = now_ms
        return -self._tokens / limit * 1000 if self._tokens < 0 else 0.0

    def take(self, amount: float) -> None:
        """Take tokens. Call `wait_ms` first. If more tokens are taken than there are, the difference is owed."""
        self._tokens -= amount
