"""Limit the cleaner's reads and writes to `log.cleaner.io.max.bytes.per.second` on average."""

from collections.abc import Callable

_CHECK_EVERY_S = 0.1


class IoThrottle:
    def __init__(
        self, bytes_per_second: float, monotonic_s: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._rate = bytes_per_second
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._began_s = monotonic_s()
        self._used_bytes = 0

    def used(self, size_bytes: int) -> None:
        """Account for `size_bytes` and sleep until the average rate is within the limit."""
        self._used_bytes += size_bytes
        if self._used_bytes < self._rate * _CHECK_EVERY_S:
            return
        ahead_s = self._used_bytes / self._rate - (self._monotonic_s() - self._began_s)
        if ahead_s > 0:
            self._sleep(ahead_s)
        self._began_s = self._monotonic_s()
        self._used_bytes = 0
