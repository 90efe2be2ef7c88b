"""Pauses between large assignments, so that consumer groups with thousands of partitions do not occupy the event loop.

An assignment is decided in one turn of the loop: 10,000 partitions of few topics take 3 to 10 ms, of as many topics 60
to 120 ms. The assignment interval keeps those of one group apart, but not those of many new groups. So after a large
assignment, of any group of the broker, the next large one may come when PAUSE_FACTOR times its CPU time has passed.
Until then a group waits for its next heartbeat, as it does within its assignment interval, and members of new groups
are asked to join again. Small groups never wait.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

LARGE_PARTITIONS = 2_000
PAUSE_FACTOR = 4
NS_PER_MS = 1_000_000


class AssignmentPauses:
    def __init__(self, cpu_ns: Callable[[], int]) -> None:
        self._cpu_ns = cpu_ns
        self._over_ms = 0

    def is_paused(self, partitions: int, now_ms: int) -> bool:
        """Return whether a group that subscribes to so many partitions must wait."""
        return partitions >= LARGE_PARTITIONS and now_ms < self._over_ms

    @contextmanager
    def measured(self, partitions: int, now_ms: int) -> Iterator[None]:
        """Measure the assignment that is made inside."""
        began_ns = self._cpu_ns()
        yield
        if partitions >= LARGE_PARTITIONS:
            self._over_ms = now_ms + PAUSE_FACTOR * (self._cpu_ns() - began_ns) // NS_PER_MS
