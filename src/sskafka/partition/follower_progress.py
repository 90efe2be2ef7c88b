"""How far one follower has come, as its leader sees it.

A follower's position is the offset that it asks for next: what it was merely sent may have been lost on the way.
It counts as caught up at the time of a fetch that asks for the leader's end, or for what the end was at its fetch
before: a follower that is always one fetch behind a busy leader is not lagging.

    leader's end   100        150        200
    fetches        at 1s: 90  at 2s: 100 at 3s: 150
    caught up      -          1s         2s
"""

UNKNOWN_OFFSET = -1
UNKNOWN_BROKER_EPOCH = -1
NEVER_MS = float("-inf")


class FollowerProgress:
    __slots__ = (
        "_last_fetch_ms",
        "_leader_end_at_last_fetch",
        "broker_epoch",
        "last_caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, last_caught_up_ms: float = NEVER_MS) -> None:
        """Nothing is known of its position before its first fetch in this leader epoch."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.last_caught_up_ms = last_caught_up_ms
        self._last_fetch_ms = NEVER_MS
        self._leader_end_at_last_fetch = 0

    def fetched(
        self, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: float
    ) -> None:
        """The follower asks for `fetch_offset`, so it has everything before."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self._leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_at_last_fetch = leader_end_offset
        self._last_fetch_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_max_ms: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_max_ms
