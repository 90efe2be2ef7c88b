"""The four offsets of one log, and their order.

    log start           last stable        high watermark       log end
        |--- readable by all ---|-- read_uncommitted --|-- not replicated --|

There is one method for each way in which a log changes, and each method keeps
`log_start <= last_stable <= high_watermark <= log_end`. No other code assigns these attributes.
"""


class LogOffsets:
    __slots__ = ("high_watermark", "last_stable", "log_end", "log_start")

    def __init__(self, log_start: int, log_end: int) -> None:
        """Start with the high watermark at the log start: nothing more is known to be replicated."""
        self.log_start = self.last_stable = self.high_watermark = log_start
        self.log_end = log_end
        self._check()

    def __repr__(self) -> str:
        return f"{self.log_start} <= {self.last_stable} <= {self.high_watermark} <= {self.log_end}"

    def append(self, log_end: int) -> None:
        assert log_end >= self.log_end, f"an append that ends at {log_end} moves {self} back"
        self.log_end = log_end

    def advance_high_watermark(self, candidate: int) -> bool:
        """Advance the high watermark to `candidate` and return whether it moved; it never moves back.

        The caller must set the last stable offset next, because open transactions may have started or ended.
        """
        assert candidate <= self.log_end, f"the high watermark {candidate} is above the log end of {self}"
        if candidate <= self.high_watermark:
            return False
        self.high_watermark = candidate
        return True

    def set_first_unstable(self, first_unstable: int | None) -> None:
        """Set the last stable offset: read_committed consumers stop before the first open transaction.

        The transaction may have started in records that were deleted since.
        """
        high_watermark = self.high_watermark
        if first_unstable is None or first_unstable >= high_watermark:
            self.last_stable = high_watermark
        else:
            self.last_stable = max(first_unstable, self.log_start)

    def truncate_to(self, log_end: int) -> None:
        """Truncate the log to `log_end`. This is the only method that may move the high watermark back."""
        assert log_end <= self.log_end, f"a truncation to {log_end} extends {self}"
        self.log_end = log_end
        self.log_start = min(self.log_start, log_end)
        self.high_watermark = min(self.high_watermark, log_end)
        self.last_stable = min(self.last_stable, log_end)
        self._check()

    def delete_before(self, log_start: int) -> None:
        """Delete the records before `log_start`, which then count as replicated and stable."""
        assert log_start >= self.log_start, f"a deletion before {log_start} moves {self} back"
        self.log_start = log_start
        self.high_watermark = max(self.high_watermark, log_start)
        self.last_stable = max(self.last_stable, log_start)
        self._check()

    def restart_at(self, offset: int) -> None:
        """Remove all records and restart the log at `offset`."""
        self.log_start = self.last_stable = self.high_watermark = self.log_end = offset

    def _check(self) -> None:
        assert self.log_start <= self.last_stable <= self.high_watermark <= self.log_end, f"out of order: {self}"
