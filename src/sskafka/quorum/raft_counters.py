"""Counters of a node's part in the quorum: records appended and fetched, and how long commits and elections took.

The quorum driver counts on the control loop; the metrics are read on another thread, which sees plain numbers.
"""

from collections import deque

from sskafka.raft.ready import LeaderAndEpoch
from sskafka.raft.voters import NO_NODE

MAX_WINDOW_MS = 30_000


class RecentTimes:
    """Number and sum of durations, and the longest one of the current and the previous window."""

    __slots__ = ("_current_ms", "_previous_ms", "_window", "count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self._window = 0
        self._current_ms = 0.0
        self._previous_ms = 0.0

    def add(self, took_ms: float, now_ms: float) -> None:
        self._turn(now_ms)
        self.count += 1
        self.total_ms += took_ms
        self._current_ms = max(self._current_ms, took_ms)

    def longest_ms(self, now_ms: float) -> float:
        self._turn(now_ms)
        return max(self._current_ms, self._previous_ms)

    def _turn(self, now_ms: float) -> None:
        window = int(now_ms // MAX_WINDOW_MS)
        if window != self._window:
            self._previous_ms = self._current_ms if window == self._window + 1 else 0.0
            self._window, self._current_ms = window, 0.0


class RaftCounters:
    def __init__(self) -> None:
        self.appended_records = 0
        """Records that this node has appended as the leader."""
        self.fetched_records = 0
        """Records that this node has fetched from the leader."""
        self.commits = RecentTimes()
        self.elections = RecentTimes()
        self._uncommitted: deque[tuple[int, float]] = deque()
        """End offset of each append of this leader, and when it was made."""
        self._leaderless_ms: float | None = None

    def appended(self, record_count: int, end_offset: int, now_ms: float) -> None:
        self.appended_records += record_count
        self._uncommitted.append((end_offset, now_ms))

    def committed_up_to(self, high_watermark: int, now_ms: float) -> None:
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            self.commits.add(now_ms - self._uncommitted.popleft()[1], now_ms)

    def leadership_changed(self, leadership: LeaderAndEpoch, now_ms: float) -> None:
        """Measure an election from the moment at which this node has no leader to that at which it knows one."""
        self._uncommitted.clear()
        if leadership.leader_id == NO_NODE:
            self._leaderless_ms = now_ms if self._leaderless_ms is None else self._leaderless_ms
        elif self._leaderless_ms is not None:
            self.elections.add(now_ms - self._leaderless_ms, now_ms)
            self._leaderless_ms = None
