"""The rate of a counter over about the last minute, computed when the counter is read.

The counter itself stays a plain number. So a rate costs nothing where it is counted, and the reader may be on another
thread. Time is an argument, in milliseconds.
"""

from collections import deque

WINDOW_MS = 60_000
STEP_MS = 1_000


class CounterRate:
    __slots__ = ("_seen",)

    def __init__(self, now_ms: float, count: float = 0.0) -> None:
        self._seen: deque[tuple[float, float]] = deque([(now_ms, count)])
        """Readings, the oldest first. The first one is the newest that is older than the window, if there is one."""

    def per_second(self, count: float, now_ms: float) -> float:
        """Return the rate since the oldest reading in the window; 0 if no time has passed."""
        return self.growth(count, now_ms) / max(now_ms - self._seen[0][0], 1.0) * 1000

    def growth(self, count: float, now_ms: float) -> float:
        """Note a reading, and return by how much the counter has grown since the oldest one in the window."""
        seen = self._seen
        if now_ms - seen[-1][0] >= STEP_MS:
            seen.append((now_ms, count))
        while len(seen) > 1 and now_ms - seen[1][0] >= WINDOW_MS:
            seen.popleft()
        return count - seen[0][1]
