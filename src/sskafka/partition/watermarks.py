"""Offsets of a replica, which always satisfy: log start <= last stable <= high watermark <= log end.

    log start           last stable        high watermark       log end
        |--- readable by all ---|-- read_uncommitted --|-- not replicated --|

Only `advance`, `truncate_to` and `start_at` move the high watermark; only truncation moves it backwards.
"""


class Watermarks:
    __slots__ = ("high_watermark",)

    def __init__(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark

    def advance(self, candidate: int, log_end_offset: int) -> bool:
        """Advance the high watermark to `candidate`; return whether it moved."""
        assert candidate <= log_end_offset, f"high watermark {candidate} above the log end {log_end_offset}"
        if candidate <= self.high_watermark:
            return False
        self.high_watermark = candidate
        return True

    def last_stable_offset(self, first_unstable_offset: int | None) -> int:
        """Return the end of what read_committed consumers see: the start of the first open transaction, if any."""
        if first_unstable_offset is None or first_unstable_offset > self.high_watermark:
            return self.high_watermark
        return first_unstable_offset

    def truncate_to(self, log_end_offset: int) -> None:
        self.high_watermark = min(self.high_watermark, log_end_offset)

    def start_at(self, log_start_offset: int) -> None:
        """Raise the high watermark to a new log start offset: records before it are gone and count as replicated."""
        self.high_watermark = max(self.high_watermark, log_start_offset)
