"""How far one follower has come, as its leader sees it.

A follower's position is the offset that it asks for next: what it was merely sent may have been lost on the way.
It counts as caught up at the time of a fetch that asks for the leader's end, or for what the end was at its fetch
before: a follower that is always one fetch behind a busy leader is not lagging.

    leader's end   100        150        200
    fetches        at 1s: 90  at 2s: 100 at 3s: 150
    caught up      -          1s         2s

A follower that has everything and keeps fetching need not be looked at each time: as long as nothing is appended, the
time of its last fetch (its pulse, which it shares with all partitions of the same fetch) is when it was caught up.
"""

UNKNOWN_OFFSET = -1
UNKNOWN_BROKER_EPOCH = -1
NEVER_MS = float("-inf")


class Pulse:
    """When a broker last fetched, for all partitions that it fetches together."""

    __slots__ = ("last_fetch_ms",)

    def __init__(self) -> None:
        self.last_fetch_ms = NEVER_MS


class FollowerProgress:
    __slots__ = (
        "_caught_up_ms",
        "_last_fetch_ms",
        "_leader_end_at_last_fetch",
        "_pulse",
        "broker_epoch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, last_caught_up_ms: float = NEVER_MS) -> None:
        """Nothing is known of its position before its first fetch in this leader epoch."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self._caught_up_ms = last_caught_up_ms
        self._last_fetch_ms = NEVER_MS
        self._leader_end_at_last_fetch = 0
        self._pulse: Pulse | None = None

    @property
    def last_caught_up_ms(self) -> float:
        return self._caught_up_ms if self._pulse is None else max(self._caught_up_ms, self._pulse.last_fetch_ms)

    def fetched(
        self,
        fetch_offset: int,
        log_start_offset: int,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: float,
        pulse: Pulse | None = None,
    ) -> None:
        """The follower asks for `fetch_offset`, so it has everything before.

        `pulse` moves on with later fetches; a follower at the end now is taken to stay there until told otherwise."""
        if self._pulse is not None:
            self._caught_up_ms = self.last_caught_up_ms
            self._last_fetch_ms = self._pulse.last_fetch_ms
        is_at_end = fetch_offset >= leader_end_offset
        if is_at_end:
            self._caught_up_ms = max(self._caught_up_ms, now_ms)
        elif fetch_offset >= self._leader_end_at_last_fetch:
            self._caught_up_ms = max(self._caught_up_ms, self._last_fetch_ms)
        self._pulse = pulse if is_at_end else None
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_at_last_fetch = leader_end_offset
        self._last_fetch_ms = now_ms

    def left_isr(self) -> None:
        """From now on only its fetches show that it is catching up, not that it was in sync a moment ago."""
        self._caught_up_ms = NEVER_MS
        self._last_fetch_ms = NEVER_MS
        self._pulse = None

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_max_ms: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_max_ms
