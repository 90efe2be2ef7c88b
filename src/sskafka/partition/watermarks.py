"""The offsets of a replica that may only move together: log start <= last stable <= high watermark <= log end.

    log start           last stable        high watermark       log end
        |--- readable by all ---|-- read_uncommitted --|-- not replicated --|

The high watermark moves through `advance` and `truncate_to` alone, and never backwards but by truncation.
"""


class Watermarks:
    __slots__ = ("high_watermark",)

    def __init__(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark

    def advance(self, candidate: int, log_end_offset: int) -> bool:
        """Move up to `candidate`; True when that was a move."""
        assert candidate <= log_end_offset, f"high watermark {candidate} above the log end {log_end_offset}"
        if candidate <= self.high_watermark:
            return False
        self.high_watermark = candidate
        return True

    def last_stable_offset(self, first_unstable_offset: int | None) -> int:
        """Where read_committed readers stop: before the first transaction that is still open."""
        if first_unstable_offset is None or first_unstable_offset > self.high_watermark:
            return self.high_watermark
        return first_unstable_offset

    def truncate_to(self, log_end_offset: int) -> None:
        self.high_watermark = min(self.high_watermark, log_end_offset)

    def start_at(self, log_start_offset: int) -> None:
        """Records before the new start are gone, so they count as replicated."""
        self.high_watermark = max(self.high_watermark, log_start_offset)
