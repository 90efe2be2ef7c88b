"""Replication progress of one follower, as tracked by its leader.

A follower's position is the offset of its next fetch: records that were only sent to it may have been lost on the way.
A follower is caught up at the time of a fetch at the leader's log end offset. It is also caught up if it fetches at
what the log end offset was at its previous fetch; then the time of that previous fetch counts. So a follower that
is always one fetch behind a busy leader does not count as lagging.

    leader's end   100        150        200
    fetches        at 1s: 90  at 2s: 100 at 3s: 150
    caught up      -          1s         2s

A follower at the log end that keeps fetching needs no update per fetch: while nothing is appended, its last caught-up
time is the time of its last fetch. All partitions of a fetch session share one `LastFetch`, and one that the session
forgets, for instance because the follower's disk is full, keeps the time of the last fetch before.
"""

from typing import Final

UNKNOWN_OFFSET: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1
NEVER_MS: Final = float("-inf")


class LastFetch:
    """Time of a broker's last fetch, shared by all partitions that it fetches together."""

    __slots__ = ("at_ms",)

    def __init__(self) -> None:
        self.at_ms = NEVER_MS


class FollowerProgress:
    __slots__ = (
        "_caught_up_ms",
        "_last_fetch",
        "_last_fetch_ms",
        "_leader_end_at_last_fetch",
        "broker_epoch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, last_caught_up_ms: float = NEVER_MS) -> None:
        """The position is unknown before the first fetch in this leader epoch."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self._caught_up_ms = last_caught_up_ms
        self._last_fetch_ms = NEVER_MS
        self._leader_end_at_last_fetch = 0
        self._last_fetch: LastFetch | None = None

    @property
    def last_caught_up_ms(self) -> float:
        return self._caught_up_ms if self._last_fetch is None else max(self._caught_up_ms, self._last_fetch.at_ms)

    def fetched(
        self,
        fetch_offset: int,
        log_start_offset: int,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: float,
        last_fetch: LastFetch | None = None,
    ) -> None:
        """Record a fetch at `fetch_offset`, which means that the follower has all records before this offset.

        If the follower is at the log end, `last_fetch` stands for its later fetches until the next call."""
        if self._last_fetch is not None:
            self._caught_up_ms = self.last_caught_up_ms
            self._last_fetch_ms = self._last_fetch.at_ms
        is_at_end = fetch_offset >= leader_end_offset
        if is_at_end:
            self._caught_up_ms = max(self._caught_up_ms, now_ms)
        elif fetch_offset >= self._leader_end_at_last_fetch:
            self._caught_up_ms = max(self._caught_up_ms, self._last_fetch_ms)
        self._last_fetch = last_fetch if is_at_end else None
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_at_last_fetch = leader_end_offset
        self._last_fetch_ms = now_ms

    def forgotten_by(self, last_fetch: LastFetch) -> None:
        """Count later fetches of a session no longer: the follower does not fetch this partition in it any more."""
        if self._last_fetch is last_fetch:
            self._caught_up_ms = self.last_caught_up_ms
            self._last_fetch_ms = last_fetch.at_ms
            self._last_fetch = None

    def left_isr(self) -> None:
        """Forget that the follower was caught up: from now on only its fetches show that it catches up."""
        self._caught_up_ms = NEVER_MS
        self._last_fetch_ms = NEVER_MS
        self._last_fetch = None

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_max_ms: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_max_ms
